//! Media made by the tools of other systems are recognised, and named as `blkid -p` names them: the
//! type, the label, the UUID.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use ugeom_format::content::{Content, identify};
use ugeom_testkit::program;

/// A tool that writes one structure into an image.
struct Maker {
    /// The program that must be there.
    program: &'static str,
    /// Size of the image that is made first, MiB; 0 where the tool makes the file.
    size_mib: u64,
    /// The commands of the shell: `$img` is the image, `$dir` a folder with two small files.
    script: &'static str,
    /// The type that libblkid prints for it.
    name: &'static str,
}

const fn maker(
    program: &'static str,
    size_mib: u64,
    script: &'static str,
    name: &'static str,
) -> Maker {
    Maker {
        program,
        size_mib,
        script,
        name,
    }
}

#[rustfmt::skip]
const MAKERS: &[Maker] = &[
    maker("mkfs.ext4", 8, "mke2fs -q -F -t ext2 -L two $img", "ext2"),
    maker("mkfs.ext4", 16, "mke2fs -q -F -t ext3 -L three $img", "ext3"),
    maker("mkfs.ext4", 16, "mkfs.ext4 -q -F -L four $img", "ext4"),
    maker("mkfs.ext4", 16, "mke2fs -q -F -O journal_dev $img", "jbd"),
    maker("mkfs.xfs", 320, "mkfs.xfs -q -f -L ex $img", "xfs"),
    maker("mkfs.btrfs", 160, "mkfs.btrfs -q -f -L butter $img", "btrfs"),
    maker("mkfs.vfat", 4, "mkfs.vfat -F 12 -n TWELVE $img", "vfat"),
    maker("mkfs.vfat", 32, "mkfs.vfat -F 16 -n SIXTEEN $img", "vfat"),
    maker("mkfs.vfat", 64, "mkfs.vfat -F 32 -n THIRTYTWO $img", "vfat"),
    maker("mkfs.exfat", 32, "mkfs.exfat -L 'large card' $img", "exfat"),
    maker("mkfs.f2fs", 64, "mkfs.f2fs -q -l flash $img", "f2fs"),
    maker("mkfs.jfs", 32, "mkfs.jfs -q -L journalled $img", "jfs"),
    maker("mkntfs", 16, "mkntfs -q -F -Q -L windows $img", "ntfs"),
    maker("mkfs.nilfs2", 160, "mkfs.nilfs2 -q -L logs $img", "nilfs2"),
    maker("mkfs.reiserfs", 64, "mkfs.reiserfs -q -f -l reiser $img", "reiserfs"),
    maker("mkfs.minix", 4, "mkfs.minix -1 $img", "minix"),
    maker("mkfs.minix", 4, "mkfs.minix -2 $img", "minix"),
    maker("mkfs.minix", 4, "mkfs.minix -3 $img", "minix"),
    maker("mkfs.bfs", 1, "mkfs.bfs $img", "bfs"),
    maker("mkfs.cramfs", 0, "mkfs.cramfs -n packed $dir $img", "cramfs"),
    maker("mksquashfs", 0, "mksquashfs $dir $img -quiet -no-progress", "squashfs"),
    maker("mkfs.erofs", 0, "mkfs.erofs $img $dir", "erofs"),
    maker("genromfs", 0, "genromfs -f $img -d $dir -V rom", "romfs"),
    maker("genisoimage", 0, "genisoimage -quiet -V DISC -o $img $dir", "iso9660"),
    maker("genisoimage", 0, "genisoimage -quiet -J -V 'Joliet disc' -o $img $dir", "iso9660"),
    maker("mkudffs", 16, "mkudffs --label=optical $img", "udf"),
    maker("mkudffs", 16, "mkudffs --media-type=cdr --label=optical $img", "udf"),
    maker("mkfs.ocfs2", 300, "echo y | mkfs.ocfs2 -q -M local -L oracle $img", "ocfs2"),
    maker("mkfs.gfs2", 160, "mkfs.gfs2 -q -O -p lock_nolock $img", "gfs2"),
    maker("hformat", 4, "hformat -l Macintosh $img", "hfs"),
    maker("makefs", 0, "makefs -t ffs -o version=1 -s 4m $img $dir", "ufs"),
    maker("makefs", 0, "makefs -t ffs -o version=2 -s 4m $img $dir", "ufs"),
    maker("makefs", 0, "makefs -t ffs -B big -o version=2 -s 4m $img $dir", "ufs"),
    maker("mkfs.ubifs", 0, "mkfs.ubifs -r $dir -m 2048 -e 129024 -c 100 -o $img", "ubifs"),
    maker("mkswap", 1, "mkswap -q -L swapped $img", "swap"),
    maker("cryptsetup", 32,
        "echo secret | cryptsetup -q --type luks1 --iter-time 1 luksFormat $img -", "crypto_LUKS"),
    maker("cryptsetup", 32,
        "echo secret | cryptsetup -q --type luks2 --pbkdf pbkdf2 --iter-time 1 --label hidden \
         luksFormat $img -", "crypto_LUKS"),
    maker("veritysetup", 4, "truncate -s 4M $dir/data; veritysetup format $dir/data $img",
        "DM_verity_hash"),
    maker("make-bcache", 16, "make-bcache -B $img", "bcache"),
    maker("sfdisk", 16, "printf 'label: dos\\n2048,4096,83\\n' | sfdisk -q $img", "dos"),
    maker("sfdisk", 16, "printf 'label: gpt\\n2048,4096,L\\n' | sfdisk -q $img", "gpt"),
    maker("sfdisk", 16, "printf 'label: sun\\n' | sfdisk -q $img", "sun"),
    maker("sfdisk", 16, "printf 'label: sgi\\n' | sfdisk -q $img", "sgi"),
    maker("parted", 16, "parted -s $img mklabel mac mkpart x 1MiB 2MiB", "mac"),
];

/// Structures that libblkid does not know; only the name is compared.
#[rustfmt::skip]
const OTHERS: &[Maker] = &[
    maker("qemu-img", 0, "qemu-img create -q -f qcow2 $img 40G", "qcow2"),
    maker("qemu-img", 0, "qemu-img create -q -f qcow $img 40M", "qcow"),
    maker("qemu-img", 0, "qemu-img create -q -f qed $img 40M", "qed"),
    maker("qemu-img", 0, "qemu-img create -q -f vmdk $img 40M", "vmdk"),
    maker("qemu-img", 0, "qemu-img create -q -f vdi $img 40M", "vdi"),
    maker("qemu-img", 0, "qemu-img create -q -f vpc $img 40M", "vhd"),
    maker("qemu-img", 0, "qemu-img create -q -f vpc -o subformat=fixed $img 4M", "vhd"),
    maker("qemu-img", 0, "qemu-img create -q -f vhdx $img 40M", "vhdx"),
    maker("qemu-img", 0, "qemu-img create -q -f parallels $img 40M", "parallels"),
    maker("mkfs.jffs2", 0, "mkfs.jffs2 -r $dir -o $img", "jffs2"),
    maker("gzip", 0, "gzip -c $dir/one > $img", "gzip"),
    maker("xz", 0, "xz -c $dir/one > $img", "xz"),
    maker("zstd", 0, "zstd -q -c $dir/one > $img", "zstd"),
    maker("mkfs.vfat", 32, "mkfs.vfat -A -F 16 $img", "vfat"),
    maker("lzip", 0, "lzip -c $dir/one > $img", "lzip"),
    maker("lzop", 0, "lzop -c $dir/one > $img", "lzop"),
    maker("cpio", 0, "cd $dir; ls | cpio --quiet -o -H newc > $img", "cpio"),
    maker("bzip2", 0, "bzip2 -c $dir/one > $img", "bzip2"),
    maker("tar", 0, "tar -cf $img -C $dir one", "tar"),
    maker("parted", 16, "parted -s $img mklabel amiga", "amiga"),
    maker("parted", 16, "parted -s $img mklabel atari mkpart primary 1MiB 2MiB", "atari"),
    maker("parted", 16, "parted -s $img mklabel pc98 mkpart primary ext2 1MiB 8MiB", "pc98"),
    maker("parted", 16, "parted -s $img mklabel bsd", "bsd"),
    maker("mkimage", 0, "mkimage -A arm -O linux -T kernel -n linux -d $dir/two $img", "uimage"),
    maker("mkenvimage", 0, "echo bootcmd=boot | mkenvimage -s 16384 -o $img -", "uboot_env"),
    maker("mkenvimage", 0, "echo bootcmd=boot | mkenvimage -r -s 131072 -o $img -", "uboot_env"),
    maker("dtc", 0, "echo '/dts-v1/; / { model = \"board\"; };' | dtc -q -o $img", "fdt"),
    maker("img2simg", 0, "truncate -s 64K $dir/two; img2simg $dir/two $img", "android_sparse"),
    maker("mkbootimg", 0, "mkbootimg --kernel $dir/two -o $img", "android_boot"),
];

/// Runs a maker in a folder of its own; the image, or why there is none.
fn make(folder: &Path, maker: &Maker) -> Result<std::path::PathBuf, String> {
    let image = folder.join("image");
    let dir = folder.join("dir");
    std::fs::create_dir(&dir).expect("a folder");
    std::fs::write(dir.join("one"), b"one file").expect("a file");
    std::fs::write(dir.join("two"), vec![7; 5000]).expect("another file");
    if maker.size_mib > 0 {
        let file = File::create(&image).expect("an image");
        file.set_len(maker.size_mib << 20).expect("its size");
    }
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(maker.script)
        .env("img", &image)
        .env("dir", &dir);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    let output = command.output().expect("a shell");
    match output.status.success() {
        true => Ok(image),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn contents(image: &Path) -> Vec<Content> {
    let file = File::open(image).expect("the image");
    let size = file.metadata().expect("its size").len();
    let found = identify(size, &mut |offset, length| {
        let mut bytes = vec![0; length];
        let read = file.read_at(&mut bytes, offset);
        bytes.truncate(read.map_err(|error| error.to_string())?);
        Ok(bytes)
    });
    assert_eq!(found.read_error, None);
    found.contents
}

/// The output of `blkid -p`: TYPE or PTTYPE, LABEL, UUID.
fn blkid(blkid: &Path, image: &Path) -> BTreeMap<String, String> {
    let mut command = Command::new(blkid);
    for argument in [
        "-p", "-o", "full", "-s", "TYPE", "-s", "PTTYPE", "-s", "LABEL", "-s", "UUID",
    ] {
        command.arg(argument);
    }
    let output = command.arg(image).output();
    let text = String::from_utf8(output.expect("blkid").stdout).expect("text");
    let pairs = text.split("\" ").filter_map(|pair| {
        let (name, value) = pair
            .rsplit_once(": ")
            .map_or(pair, |(_, rest)| rest)
            .split_once("=\"")?;
        Some((
            name.trim().to_owned(),
            value.trim_end().trim_end_matches('"').to_owned(),
        ))
    });
    pairs.collect()
}

#[test]
fn what_tools_write_is_recognised_as_blkid_names_it() {
    let Some(reference) = program("blkid") else { return };
    let mut wrong = Vec::new();
    for maker in MAKERS {
        if program(maker.program).is_none() {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let compared = make(folder.path(), maker)
            .and_then(|image| same(maker, &contents(&image), &blkid(&reference, &image)));
        wrong.extend(compared.err().map(|why| format!("{}: {why}", maker.script)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn same(maker: &Maker, all: &[Content], wanted: &BTreeMap<String, String>) -> Result<(), String> {
    let text = |name: &str| wanted.get(name).map(|text| text.trim_end());
    let kind = text("TYPE").or(text("PTTYPE"));
    if kind != Some(maker.name) {
        return Err(format!("blkid finds {wanted:?}"));
    }
    let found = all.iter().find(|content| content.name == maker.name);
    let found = found.ok_or_else(|| format!("blkid finds {wanted:?}, we {all:?}"))?;
    let uuid = text("UUID").is_none() || found.uuid.as_deref() == text("UUID");
    match found.label.as_deref() == text("LABEL") && uuid {
        true => Ok(()),
        false => Err(format!("blkid finds {wanted:?}, we {found:?}")),
    }
}

#[test]
fn what_blkid_does_not_know_is_recognised() {
    let mut wrong = Vec::new();
    for maker in OTHERS {
        if program(maker.program).is_none() {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let found = make(folder.path(), maker).and_then(|image| {
            let all = contents(&image);
            let known = all.iter().any(|content| content.name == maker.name);
            known.then_some(()).ok_or_else(|| format!("{all:?}"))
        });
        wrong.extend(found.err().map(|why| format!("{}: {why}", maker.script)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
