#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Keeps the symbols of flexmem.ko for the drivers of devices, which are built against them: one file for each kernel,
# /usr/lib/flexmem/KERNEL/Module.symvers. DKMS calls this script after it has built or removed the modules for a kernel,
# and so does `make modules_install`.
# usage: symvers.sh install KERNEL [FILE]    FILE: default is Module.symvers in the current directory
#        symvers.sh remove KERNEL
# DESTDIR is put before the path.
set -eu

action=${1:-}
kernel=${2:?usage: symvers.sh install|remove KERNEL [FILE]}
directory=${DESTDIR:-}/usr/lib/flexmem/$kernel
case $action in
install)
	install -d "$directory"
	install -m 644 "${3:-Module.symvers}" "$directory/Module.symvers"
	;;
remove)
	rm -f "$directory/Module.symvers"
	# Directories that are not empty stay, and so does a directory that is not there.
	rmdir "$directory" "${directory%/*}" 2>/dev/null || :
	;;
*)
	echo "symvers.sh: unknown action '$action'" >&2
	exit 2
	;;
esac
