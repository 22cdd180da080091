# The programs that FreeBSD's tests of GELI call, in terms of ugeom. Disks are files in $D. A provider
# that is "attached" is a file $D/NAME.eli.target that names its stack; $D/NAME.eli marks it. A file is
# linked to each name, and this is called by it.
set -u

# The target of FreeBSD's name of a disk or partition.
target() {
	case "$1" in
	md*a) echo "$D/${1%a}@a" ;;
	md*p1) echo "$D/${1%p1}@p1" ;;
	md*) echo "$D/$1" ;;
	*) echo "$1" ;;
	esac
}

# The verb and its options, and the last argument as a target.
with_target() {
	words=
	for word; do words=$words${last+" '$last'"}; last=$word; done
	eval "\"$UGEOM\" $words \"\$(target \"$last\")\""
}

attach() {
	keys= options=legacy=1 keyfiles= OPTIND=1
	while getopts Cdprvn:j:k: letter; do
		case "$letter" in
		p) keys="$keys -p" options=$options,nopassphrase=1 ;;
		k) keys="$keys -k $OPTARG" keyfiles=${keyfiles:+$keyfiles:}$OPTARG ;;
		*) echo "attach -$letter cannot be done" >&2; exit 70 ;;
		esac
	done
	shift $((OPTIND - 1))
	"$UGEOM" geli attach -C $keys "$(target "$1")" || exit
	echo "$(target "$1") | eli:$options${keyfiles:+,keyfile=$keyfiles}" >"$D/$1.eli.target"
	echo "$keys" >"$D/$1.eli.keys"
	cp "$D/$1.eli.target" "$D/$1.eli.spec"
	: >"$D/$1.eli"
}

# A one-time key lives in one process: a server.
onetime() {
	options=onetime=1,legacy=1 OPTIND=1
	while getopts e:l:s: letter; do
		case "$letter" in
		e) options=$options,ealgo=$OPTARG ;;
		l) options=$options,keylen=$OPTARG ;;
		s) options=$options,sectorsize=$OPTARG ;;
		esac
	done
	shift $((OPTIND - 1))
	echo "$(target "$1") | eli:$options" >"$D/$1.eli.spec"
	mkdir -p "$D/fuse"
	"$UGEOM" serve --rw --fuse "$D/fuse" "$(cat "$D/$1.eli.spec")" >"$D/log" 2>&1 </dev/null &
	echo $! >"$D/server"
	turns=0
	until [ -f "$D/fuse/$1.eli" ]; do
		turns=$((turns + 1))
		[ $turns -lt 600 ] || { cat "$D/log" >&2; exit 1; }
		sleep 0.05
	done
	ln -s "$D/fuse/$1.eli" "$D/$1.eli"
}

detach() {
	name=${1%.eli}
	[ -e "$D/$name.eli" ] || exit 1
	if [ -f "$D/server" ]; then
		kill -TERM "$(cat "$D/server")"
		while kill -0 "$(cat "$D/server")" 2>/dev/null; do sleep 0.05; done
		rm "$D/server"
	fi
	rm -f "$D/$name.eli" "$D/$name.eli".*
}

geli() {
	verb=$1
	shift
	case "$verb" in
	attach | onetime | detach) $verb "$@" ;;
	init) with_target geli init --destroy --legacy "$@" ;;
	setkey)
		# Of an attached provider FreeBSD's kernel has the old key.
		for name; do :; done
		old=
		[ -f "$D/$name.eli.keys" ] && old=$(cat "$D/$name.eli.keys")
		with_target geli setkey -B none $old "$@"
		;;
	restore | resize) with_target geli $verb -B none "$@" ;;
	backup) "$UGEOM" geli backup "$(target "$1")" "$2" ;;
	*) with_target geli $verb "$@" ;;
	esac
}

mdconfig() {
	size= unit=0 OPTIND=1
	while getopts adt:s:u: letter; do
		case "$letter" in
		d) size=gone ;;
		s) size=$OPTARG ;;
		u) unit=$OPTARG ;;
		esac
	done
	case "$size" in
	gone) rm -f "$D/md$unit" ;;
	*b) truncate -s "${size%b}" "$D/md$unit" ;;
	*m) truncate -s "${size%m}M" "$D/md$unit" && echo "md$unit" ;;
	*) truncate -s $((size * 512)) "$D/md$unit" ;;
	esac
}

dd() {
	from= to= bs=512 count=
	for word; do
		case "$word" in
		if=*) from=${word#if=} ;;
		of=*) to=${word#of=} ;;
		bs=*) bs=${word#bs=} ;;
		count=*) count=${word#count=} ;;
		esac
	done
	if [ -f "$from.target" ]; then
		"$UGEOM" read "$(cat "$from.target")" ${count:+--length $((bs * count))} >"${to:-/dev/stdout}"
	elif [ -f "$to.target" ]; then
		"$UGEOM" write --destroy "$(cat "$to.target")" <"$from"
	else
		case "$to" in
		# A file is not to be cut off, as a disk is not.
		"$D"/md*) /bin/dd conv=notrunc "$@" ;;
		*) /bin/dd "$@" ;;
		esac
	fi
}

# The first line of a label: `a: SECTORS ...`.
disklabel() {
	sectors=$(sed -n 's/^a: \([0-9]*\).*/\1/p')
	"$UGEOM" part show "$D/md0@a" >/dev/null 2>&1 || "$UGEOM" part show "$D/md0" | grep -q BSD ||
		"$UGEOM" part create -s bsd "$D/md0" || exit
	"$UGEOM" part resize -i 1 -s "$sectors" "$D/md0" 2>/dev/null ||
		"$UGEOM" part add -t freebsd-ufs -b 16 -s "$sectors" "$D/md0"
}

# Random bytes in place of a file system.
newfs() {
	for name; do :; done
	head -c 65536 /dev/urandom >"$D/file_system"
	"$UGEOM" write --destroy "$(cat "$D/$name.target")" <"$D/file_system"
}

fsck() {
	for name; do :; done
	"$UGEOM" read "$(cat "$D/$name.target")" --length 65536 | cmp -s - "$D/file_system" || echo MODIFIED
}

case "${0##*/}" in
# The disk comes before the provider on it.
diskinfo) "$UGEOM" diskinfo "$(cat "${1}.spec")" | tail -n 1 ;;
gpart) verb=$1; shift; with_target part "$verb" "$@" ;;
md5) md5sum | cut -d ' ' -f 1 ;;
id) echo 0 ;;
kldstat | growfs) ;;
*) "${0##*/}" "$@" ;;
esac
