#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds a debug kernel into DIR (see kernel.sh) from Debian's linux-source-6.12: allnoconfig plus debug.config. For the
# kind kcsan, options in kcsan.config replace those in debug.config. With --source the script only unpacks the source
# into build/linux-source, for the static checks and the self tests. The kernel is built again only if its configuration
# or the source package changes.
# usage: tests/vm/debug-kernel.sh DIR [debug|kcsan]
#        tests/vm/debug-kernel.sh --source
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

dir=$1
kind=${2:-debug}
package=linux-source-6.12
fragment=$TOP/tests/vm/debug.config
source=$BUILD/linux-source
version=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null) || die "$package is not installed"

unpack() {
	lock linux-source
	[[ $(cat "$source/.version" 2>/dev/null) != "$version" ]] || return 0
	say "Unpacking $package $version, once: a minute"
	rm -rf "$source"
	mkdir -p "$source"
	# Leaves out a driver that is not built: its register lists are a sixth of the source.
	tar -xJf "/usr/src/$package.tar.xz" -C "$source" --strip-components=1 --exclude='*/drivers/gpu/drm/amd/include'
	# With KASAN the table of stack traces has 2^20 lists, and each scan for leaks reads all of them. Here only a
	# few thousand traces are stored, so a smaller table is enough.
	sed -i 's/^\(#define STACK_BUCKET_NUMBER_ORDER_MAX\) 20$/\1 15/' "$source/lib/stackdepot.c"
	grep -q 'ORDER_MAX 15$' "$source/lib/stackdepot.c" || die 'stackdepot.c is not what it was'
	echo "$version" >"$source/.version"
}

(unpack)
[[ $dir != --source ]] || exit 0

# overlay OVER BASE: prints OVER, and those lines of BASE whose options are not in OVER
overlay() {
	awk '{ name = "" }
	match($0, /CONFIG_[A-Z0-9_]+/) && /^(# )?CONFIG_/ { name = substr($0, RSTART, RLENGTH) }
	NR == FNR { over[name] = 1; print; next }
	!name || !(name in over)' "$1" "$2"
}
instrument=()
if [[ $kind == kcsan ]]; then
	mkdir -p "$BUILD/vm"
	overlay "$TOP/tests/vm/kcsan.config" "$fragment" >"$BUILD/vm/kcsan.config"
	fragment=$BUILD/vm/kcsan.config
	instrument=(KCSAN_SANITIZE=n)
fi

# The key depends only on the options: a changed comment does not change the kernel.
key=$({ echo "$version" && grep CONFIG_ "$fragment"; } | sha256sum | cut -d' ' -f1)
[[ $(cat "$dir/key" 2>/dev/null) != "$key" ]] || exit 0

say "Building the $kind kernel, once: 3 to 30 minutes"
obj=$dir/obj
rm -rf "$dir"
mkdir -p "$obj"
make=(make -C "$source" "O=$obj" "-j$(nproc)" KBUILD_BUILD_USER=flexmem KBUILD_BUILD_HOST=vm)
quietly "$BUILD/log/$kind-config" "${make[@]}" "KCONFIG_ALLCONFIG=$fragment" allnoconfig

# Kconfig silently drops options that it does not know or cannot set.
lost=$(grep -E '^(CONFIG_|# CONFIG_.* is not set)' "$fragment" | while read -r line; do
	case $line in
	'# '*) name=${line#\# } && name=${name% is not set} && ! grep -q "^$name=" "$obj/.config" || echo "$line" ;;
	*) grep -qxF -- "$line" "$obj/.config" || echo "$line" ;;
	esac
done)
[[ ! $lost ]] || die "not in the resulting configuration:"$'\n'"$lost"

quietly "$BUILD/log/$kind-build" "${make[@]}" "${instrument[@]}" bzImage modules
cp "$obj/arch/x86/boot/bzImage" "$dir/vmlinuz"
cp "$obj/include/config/kernel.release" "$dir/release"
ln -s obj "$dir/headers"
# External modules need tools, generated headers and Module.symvers, but no objects.
find "$obj" -path "$obj/scripts" -prune -o -path "$obj/tools" -prune -o \
	\( -name '*.[oa]' -o -name '.*.cmd' -o -name 'vmlinux.*' -o -name '.tmp_*' \) -type f -exec rm -f {} +
echo "$key" >"$dir/key"
