/*
 * A null file system on libfuse: DIR/null has 1 GiB, reads of it bring zeroes and writes are
 * forgotten, without any data being touched. What the bench `fuse` is held against.
 *
 *   cc -O2 -o null null.c $(pkg-config --cflags --libs fuse3)
 *   null -f DIR
 */
#define FUSE_USE_VERSION 31

#include <errno.h>
#include <fuse.h>
#include <string.h>
#include <sys/stat.h>

static const off_t size_bytes = 1 << 30;

static int is_file(const char *path) { return strcmp(path, "/null") == 0; }

static int attributes(const char *path, struct stat *found, struct fuse_file_info *info) {
    (void)info;
    memset(found, 0, sizeof *found);
    if (strcmp(path, "/") == 0) {
        found->st_mode = S_IFDIR | 0755;
        found->st_nlink = 2;
        return 0;
    }
    found->st_mode = S_IFREG | 0600;
    found->st_nlink = 1;
    found->st_size = size_bytes;
    return is_file(path) ? 0 : -ENOENT;
}

static int open_file(const char *path, struct fuse_file_info *info) {
    info->direct_io = 1;
    return is_file(path) ? 0 : -ENOENT;
}

static int inside(off_t offset, size_t length) {
    off_t left = offset < size_bytes ? size_bytes - offset : 0;
    return (off_t)length < left ? (int)length : (int)left;
}

static int read_file(const char *path, char *into, size_t length, off_t offset,
                     struct fuse_file_info *info) {
    (void)path, (void)into, (void)info;
    return inside(offset, length);
}

static int write_file(const char *path, const char *from, size_t length, off_t offset,
                      struct fuse_file_info *info) {
    (void)path, (void)from, (void)info;
    return inside(offset, length);
}

static const struct fuse_operations operations = {
    .getattr = attributes,
    .open = open_file,
    .read = read_file,
    .write = write_file,
};

int main(int count, char **arguments) {
    return fuse_main(count, arguments, &operations, NULL);
}
