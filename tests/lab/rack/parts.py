# SPDX-License-Identifier: Apache-2.0
"""What the lab needs from the host: programs, the distribution's kernel, an initramfs.

The kernel is Debian's package, unpacked, never installed. It and the
initramfs live in a cache directory; each appears there complete, by rename.
"""

import fcntl
import glob
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from typing import NamedTuple

from . import EXIT_BROKEN, EXIT_MISSING, LAB_DIR, LabError

PROGRAMS = {  # program: Debian package; no rig runs without them
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "modprobe": "kmod",
    "cpio": "cpio",
    "rdma": "iproute2",
    "setpriv": "util-linux",
    "dpkg-deb": "dpkg",
}
GUEST_PACKAGES = [  # what tests run inside the guests
    "perftest", "ibverbs-providers", "ibverbs-utils", "rdma-core", "rdmacm-utils", "socat", "hwloc-nox",
    "pciutils", "iputils-ping"]
BOOT_MODULES = ["virtio_pci", "9p", "9pnet_virtio", "overlay"]
INSTALL_HINT = "run 'tests/lab/run --install'"

SEARCH_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin"  # sbin: not in a user's PATH


class Parts(NamedTuple):
    kernel: str
    modules: str  # the directory that belongs at /lib/modules
    initramfs: str


def program(name):
    return shutil.which(name, path=SEARCH_PATH)


def cache_dir():
    base = os.environ.get("GTOPO_LAB_CACHE") or os.environ.get("XDG_CACHE_HOME") \
        or os.path.expanduser("~/.cache")
    return os.path.join(base, "gtopo-lab")


def run(argv, what, **options):
    """Run a host program to its end; its stdout as text, or LabError with its last words."""
    environment = dict(os.environ, PATH=SEARCH_PATH, LC_ALL="C", DEBIAN_FRONTEND="noninteractive")
    done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **options)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise LabError(EXIT_BROKEN, f"cannot {what}: {' '.join(argv)} ended with status "
                                    f"{done.returncode}: {' / '.join(words)}")
    return done.stdout.decode(errors="replace")


def cached_kernel():
    """The newest unpacked kernel in the cache, or None."""
    trees = [os.path.dirname(file) for file in glob.glob(os.path.join(cache_dir(), "kernel-*", "vmlinux"))]
    return max(trees, key=lambda tree: [int(n) for n in re.findall(r"\d+", os.path.basename(tree))],
               default=None)


def missing_packages():
    return [package for name, package in PROGRAMS.items() if not program(name)]


def ready():
    """The parts, made ready; LabError 77 with one sentence when something is not installed."""
    if missing_packages():
        raise LabError(EXIT_MISSING, f"the lab needs the package(s) {' '.join(missing_packages())}; "
                                     f"{INSTALL_HINT}")
    tree = cached_kernel()
    if tree is None:
        raise LabError(EXIT_MISSING, f"the lab needs a guest kernel, there is none in {cache_dir()}; "
                                     f"{INSTALL_HINT}")
    return Parts(os.path.join(tree, "vmlinux"), os.path.join(tree, "lib", "modules"), initramfs(tree))


@contextmanager
def locked():
    """One process at a time makes or drops things in the cache."""
    os.makedirs(cache_dir(), exist_ok=True)
    with open(os.path.join(cache_dir(), "lock"), "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def scratch():
    """A directory on the cache's file system, so that what is made in it can be renamed into place."""
    directory = tempfile.mkdtemp(prefix="tmp-", dir=cache_dir())
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def module_files(tree, version):
    """The boot modules with what they depend on, in the order they must be inserted."""
    files = {}
    for module in BOOT_MODULES:
        shown = run([program("modprobe"), "-d", tree, "-S", version, "--show-depends", module],
                    f"find kernel module {module}")
        files.update((line.split()[1], None) for line in shown.splitlines() if line.startswith("insmod"))
    return list(files)


def initramfs(tree):
    """The initramfs for this kernel and the current guest/init, made when it is not in the cache."""
    init = os.path.join(LAB_DIR, "guest", "init")
    version = os.path.basename(tree)[len("kernel-"):]
    digest = hashlib.sha256(" ".join(BOOT_MODULES).encode())
    for path in (init, program("busybox")):
        with open(path, "rb") as content:
            digest.update(content.read())
    image = os.path.join(cache_dir(), f"initramfs-{version}-{digest.hexdigest()[:16]}")
    if not os.path.exists(image):
        with locked(), scratch() as directory:
            build_initramfs(os.path.join(directory, "root"), init, module_files(tree, version))
            os.rename(os.path.join(directory, "image"), image)
    return image


def build_initramfs(root, init, modules):
    for directory in ("bin", "dev", "proc", "sys", "modules", "newroot"):
        os.makedirs(os.path.join(root, directory))
    shutil.copy(program("busybox"), os.path.join(root, "bin", "busybox"))
    shutil.copy(init, os.path.join(root, "init"))
    for number, module in enumerate(modules):
        shutil.copy(module, os.path.join(root, "modules", f"{number:02}-{os.path.basename(module)}"))
    run(["sh", "-c", "find . | cpio -o -H newc > ../image"], "make the initramfs", cwd=root)


def kernel_package():
    """The package that Debian's linux-image-amd64 stands for today."""
    depends = run(["apt-cache", "depends", "linux-image-amd64"], "find the kernel package")
    found = re.search(r"Depends: (linux-image-[0-9]\S*-amd64)", depends)
    if not found:
        raise LabError(EXIT_BROKEN, "apt-cache knows no kernel behind linux-image-amd64; "
                                    "the lab takes its guest kernel from Debian on x86-64")
    return found.group(1)


def decompress(vmlinuz, vmlinux):
    """The ELF kernel inside a bzImage: to start it directly saves each boot 3 s of emulated unpacking."""
    with open(vmlinuz, "rb") as file:
        image = file.read()
    start = image.find(b"\xfd7zXZ\0")
    if start < 0:
        raise LabError(EXIT_BROKEN, f"{vmlinuz} is not compressed with xz; the lab knows Debian's kernels")
    with open(vmlinux, "wb") as file:
        file.write(lzma.LZMADecompressor().decompress(image[start:]))


def unpack_kernel(package, target):
    with scratch() as directory:
        # Downloads as root go through user _apt, which must be able to enter the directory.
        os.chmod(directory, 0o755)
        run(["apt-get", "-q", "download", package], f"download {package}", cwd=directory)
        archive, = glob.glob(os.path.join(directory, "*.deb"))
        tree = os.path.join(directory, "tree")
        run(["dpkg-deb", "-x", archive, tree], f"unpack {package}")
        version, = os.listdir(os.path.join(tree, "lib", "modules"))
        run([program("depmod"), "-b", tree, version], "index the kernel modules")
        vmlinuz, = glob.glob(os.path.join(tree, "boot", "vmlinuz-*"))
        decompress(vmlinuz, os.path.join(tree, "vmlinux"))
        os.rename(tree, target)


def prune(kept):
    """Drop kernels and initramfs of other versions, and what a killed install left."""
    for name in os.listdir(cache_dir()):
        path = os.path.join(cache_dir(), name)
        if name != "lock" and path not in kept:
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def install_packages():
    packages = sorted({*PROGRAMS.values(), *GUEST_PACKAGES})
    lock = ["-o", "DPkg::Lock::Timeout=300"]
    run(["apt-get", "-q", *lock, "update"], "refresh the package lists")
    run(["apt-get", "-q", "-y", *lock, "install", "--no-install-recommends", "--no-upgrade", *packages],
        "install the packages")
    return f"packages: {' '.join(packages)}"


def install():
    """Install the packages (as root), fetch the kernel; says what is there, a line each."""
    if os.geteuid() == 0:
        yield install_packages()
    elif missing_packages():
        raise LabError(EXIT_MISSING, f"the lab needs the package(s) {' '.join(missing_packages())}; "
                                     "only root can install them")
    package = kernel_package()
    tree = os.path.join(cache_dir(), "kernel-" + package[len("linux-image-"):])
    with locked():
        if not os.path.exists(os.path.join(tree, "vmlinux")):
            unpack_kernel(package, tree)
    yield f"kernel: {tree}"
    image = initramfs(tree)
    with locked():
        prune([tree, image])
    yield f"initramfs: {image}"
