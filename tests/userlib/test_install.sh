#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Tests the library as it is shipped: installs it, builds programs with it, and checks its symbols. Prints TAP. BUILD is
# the folder for what the tests build.
#
# The test functions are called by check(), which shellcheck does not see. CC and CXX may be several words.
# shellcheck disable=SC2317,SC2086

here=$(cd "$(dirname "$0")" && pwd)
userlib=$(cd "$here/../../userlib" && pwd)
build=${BUILD:-$here/../../build/tests/userlib}
dest=$build/install
prefix=/opt/flexmem
number=0
failed=0

# check NAME COMMAND...: runs one test; shows its output if it fails
check() {
	test=$1
	shift
	number=$((number + 1))
	if "$@" > "$build/install.log" 2>&1; then
		echo "ok $number - $test"
	else
		echo "not ok $number - $test"
		sed 's/^/# /' "$build/install.log"
		failed=1
	fi
}

installs() {
	rm -rf "$dest"
	make -s -C "$userlib" O="$build/shipped" install \
		DESTDIR="$dest" prefix=$prefix || return 1
	for file in bin/flexmem lib/libflexmem.so lib/libflexmem.so.0 \
			lib/libflexmem.a lib/pkgconfig/libflexmem.pc \
			lib/libflexmem_cuda.so lib/libflexmem_cuda.so.0 \
			include/flexmem.h include/flexmem_cache.h \
			include/flexmem_cuda.h include/linux/flexmem.h \
			lib/udev/rules.d/60-flexmem.rules \
			lib/sysusers.d/flexmem.conf \
			libexec/flexmem/flexmem-cdi-hook \
			lib/systemd/system/flexmem-cdi@.service \
			lib/systemd/system/flexmem-export.service \
			lib/systemd/system/flexmem-export.timer \
			lib/systemd/system/flexmem-limits.service \
			lib/systemd/system/flexmem-limits@.service \
			share/bash-completion/completions/flexmem \
			share/zsh/site-functions/_flexmem \
			share/flexmem/schema/list.json \
			share/flexmem/schema/release.json \
			share/flexmem/schema/watch.json \
			share/doc/flexmem/limits.conf \
			share/doc/flexmem/flexmem.rules.yml \
			share/doc/flexmem/modprobe.d/flexmem.conf \
			share/man/man1/flexmem.1 \
			share/man/man3/flexmem_cache_alloc.3; do
		test -s "$dest$prefix/$file" || { echo "no $file"; return 1; }
	done
	# Each function has a page in section 3. Many of them are links.
	functions=$(sed -n 's/^\t*\(flexmem_[a-z_]*\);/\1/p' \
		"$userlib/libflexmem.map")
	for name in $functions; do
		grep -q "^\.Nm $name" "$dest$prefix/share/man/man3/$name.3" ||
			return 1
	done
	# No other file was installed.
	test "$(find "$dest" ! -type d ! -path '*/man3/*' | wc -l)" -eq 30
}

flags() {
	PKG_CONFIG_PATH=$dest$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dest \
		pkg-config "$@" libflexmem
}

# Runs the example. It may fail only because there is no device.
runs() {
	"$@"
	test $? -le 1
}

shared_program() {
	# shellcheck disable=SC2046
	${CC:-cc} -Wall -Wextra -Werror -o "$build/first-shared" \
		"$userlib/examples/first.c" $(flags --cflags --libs) &&
	readelf -d "$build/first-shared" | grep -q 'NEEDED.*libflexmem.so.0' &&
	LD_LIBRARY_PATH=$dest$prefix/lib runs "$build/first-shared"
}

static_program() {
	# shellcheck disable=SC2046
	${CC:-cc} -static -o "$build/first-static" \
		"$userlib/examples/first.c" $(flags --static --cflags --libs) &&
	runs "$build/first-static"
}

# A program linked with the library in the build folder runs from any directory.
uninstalled_program() {
	dir=$build/elsewhere
	mkdir -p "$dir"
	# shellcheck disable=SC2046
	${CC:-cc} -Wall -Wextra -Werror -o "$dir/first" \
		"$userlib/examples/first.c" \
		$(PKG_CONFIG_PATH=$build/shipped pkg-config --cflags --libs \
			libflexmem) &&
	(cd "$dir" && runs ./first) &&
	printf '#include <linux/flexmem.h>\n' > "$dir/abi.c" &&
	${CC:-cc} -fsyntax-only \
		$(PKG_CONFIG_PATH=$build/shipped pkg-config --cflags \
			libflexmem) "$dir/abi.c"
}

# systemd accepts the units, and they may do little. The installed command is in another place than the units say.
units() {
	mkdir -p "$build/units" || return 1
	for unit in flexmem-cdi@.service flexmem-export.service flexmem-limits.service flexmem-limits@.service; do
		capabilities='(CAP_SYS_ADMIN)?'
		# It writes in a folder of another user.
		test "$unit" != flexmem-export.service || capabilities='CAP_SYS_ADMIN CAP_DAC_OVERRIDE'
		sed "s|=$prefix/bin|=$dest$prefix/bin|" "$dest$prefix/lib/systemd/system/$unit" > "$build/units/$unit" || return 1
		for line in ProtectSystem=strict "CapabilityBoundingSet=$capabilities" PrivateNetwork=yes; do
			grep -Eqx "$line" "$build/units/$unit" || { echo "$unit: no $line"; return 1; }
		done
	done
	# The timer starts the unit beside it.
	cp "$dest$prefix/lib/systemd/system/flexmem-export.timer" "$build/units" || return 1
	systemd-analyze verify --man=no "$build/units/flexmem-limits.service" \
		"$build/units/flexmem-export.service" "$build/units/flexmem-export.timer" \
		"$build/units/flexmem-limits@flexmem64.service" \
		"$build/units/flexmem-cdi@flexmem64.service" > "$build/units/output" 2>&1
	if test $? -ne 0 || test -s "$build/units/output"; then
		cat "$build/units/output"
		return 1
	fi
	# The example is right.
	"$dest$prefix/bin/flexmem" limit --check "$dest$prefix/share/doc/flexmem/limits.conf"
}

# systemd, udev and modprobe must accept the installed files.
system_files() {
	udevadm verify --help > /dev/null 2>&1 &&
		{ udevadm verify "$dest$prefix/lib/udev/rules.d/60-flexmem.rules" ||
			return 1; }
	units || return 1
	rm -rf "$build/sysroot" &&
	mkdir -p "$build/sysroot/etc" &&
	systemd-sysusers --root="$build/sysroot" \
		"$dest$prefix/lib/sysusers.d/flexmem.conf" &&
	grep -q '^flexmem:' "$build/sysroot/etc/group" &&
	modprobe -C "$dest$prefix/share/doc/flexmem/modprobe.d" -c |
		grep -q '^options flexmem_sim slots=8'
}

# If the allocation fails, the example must print no address.
example_fails() {
	! FLEX_DEVICE=/nonexistent LD_LIBRARY_PATH=$dest$prefix/lib \
		"$build/first-shared" > "$build/first.txt" 2>&1 &&
	test "$(cat "$build/first.txt")" = \
		"no such device (is its driver loaded?), or it is gone"
}

# If kernel headers are missing, the message must name the package for the kernel of the modules.
names_missing_headers() {
	modules=$here/../vm/modules.sh
	! "$modules" host-9.9.9-x /lib/modules/9.9.9-x/build \
		2> "$build/headers.txt" &&
	grep -q 'no headers of kernel 9.9.9-x: install linux-headers-9.9.9-x$' \
		"$build/headers.txt" &&
	! "$modules" host-9.9.9-x /nowhere 2> "$build/headers.txt" &&
	grep -q 'no kernel headers in KDIR=/nowhere$' "$build/headers.txt"
}

# For an unknown kernel nothing is installed, built or downloaded.
names_known_kernels() {
	vm=$here/../vm
	for command in "make -s -C $here/../.. vm KERNEL=5.10" \
			"$vm/modules.sh 5.10" "$vm/kernel.sh 5.10" \
			"$vm/run.sh 5.10 -- true"; do
		! $command 2> "$build/kernels.txt" &&
		grep -q "no kernel '5.10': there are 6.1, 6.12, 7, debug and kcsan$" \
			"$build/kernels.txt" || return 1
	done
}

# A C++ program compiles with every warning that a C++ project may treat as an error, uses the structs that have the
# name of a function, and runs.
program_of_cxx() {
	# shellcheck disable=SC2046
	${CXX:-c++} -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
		-Wold-style-cast -Werror -o "$build/mapped-cxx" \
		"$here/mapped.cc" $(flags --cflags --libs) &&
	LD_LIBRARY_PATH=$dest$prefix/lib "$build/mapped-cxx"
}

# A helper ends without another descriptor; it cannot begin without one (EMFILE is 24). The library must cancel no
# thread: a cancellation loads libgcc_s, and aborts the process if that fails.
last_descriptor() {
	# shellcheck disable=SC2046
	${CC:-cc} -Wall -Wextra -Werror -o "$build/last-descriptor" \
		"$here/last_descriptor.c" $(flags --cflags --libs) &&
	test "$(LD_LIBRARY_PATH=$dest$prefix/lib "$build/last-descriptor")" = \
		"stop: 0, start: -24" &&
	! nm -D --undefined-only "$dest$prefix/lib/libflexmem.so" |
		grep -E 'pthread_(cancel|exit)'
}

header_alone() {
	echo "#include <$2>" > "$build/alone.$1"
	shift 2
	"$@" -Wall -Wextra -Wpedantic -Werror -I"$dest$prefix/include" \
		-fsyntax-only
}

header_beside_uapi() {
	printf '#include <linux/flexmem.h>\n#include <flexmem.h>\n' \
		> "$build/beside.c"
	${CC:-cc} -Wall -Wextra -Werror -I"$dest$prefix/include" \
		-I"$here/../../uapi" -fsyntax-only "$build/beside.c"
}

# The exported functions are those of the header and of the version map.
exported() {
	nm -D --defined-only "$dest$prefix/lib/libflexmem.so" |
		sed -n 's/.* T \(.*\)@@FLEXMEM_0\.[0-9]*$/\1/p' | sort
}

symbols_are_the_map() {
	sed -n 's/^\t\t\([a-z_]*\);$/\1/p' "$userlib/libflexmem.map" | sort \
		> "$build/map.txt"
	exported > "$build/exported.txt"
	test -s "$build/map.txt" && diff "$build/map.txt" "$build/exported.txt"
}

symbols_are_the_header() {
	cat "$dest$prefix/include/flexmem.h" \
		"$dest$prefix/include/flexmem_cache.h" |
		grep -v '^#' | tr '\n' ' ' |
		grep -o 'FLEXMEM_API[^(]*(' | grep -o '[a-z_]* *($' |
		tr -d ' (' | sort > "$build/header.txt"
	exported | diff "$build/header.txt" -
}

nothing_else_is_exported() {
	! nm -D --defined-only "$dest$prefix/lib/libflexmem.so" |
		grep -v '@@FLEXMEM_0\.[0-9]*$' |
		grep -v ' A FLEXMEM_0\.[0-9]*$'
}

# A released symbol keeps its symbol version, so that programs linked against that release still run.
version_of() {
	nm -D --defined-only "$dest$prefix/lib/libflexmem.so" |
		sed -n "s/.* T $1@@//p"
}

versions_stay() {
	test "$(version_of flexmem_device_alloc)" = FLEXMEM_0.1 &&
	test "$(version_of flexmem_segments_free)" = FLEXMEM_0.1 &&
	test "$(version_of flexmem_device_map)" = FLEXMEM_0.2 &&
	test "$(version_of flexmem_cache_trim)" = FLEXMEM_0.2 &&
	test "$(version_of flexmem_device_resize)" = FLEXMEM_0.3 &&
	test "$(version_of flexmem_device_count)" = FLEXMEM_0.4 &&
	test "$(nm -D --defined-only "$dest$prefix/lib/libflexmem.so" |
		grep -c '@@FLEXMEM_0\.1$')" -eq 22 &&
	test "$(nm -D --defined-only "$dest$prefix/lib/libflexmem.so" |
		grep -c '@@FLEXMEM_0\.2$')" -eq 36 &&
	test "$(nm -D --defined-only "$dest$prefix/lib/libflexmem.so" |
		grep -c '@@FLEXMEM_0\.3$')" -eq 35
}

# A static library cannot hide names, so each must have the library's prefix.
static_names() {
	! nm -g --defined-only "$dest$prefix/lib/libflexmem.a" |
		grep ' [A-Z] ' | grep -v ' [A-Z] \(flexmem_\|fmlib_\)'
}

# The library for NVIDIA GPUs exports what its header declares, and needs neither CUDA nor PyTorch.
cuda_library() {
	library=$dest$prefix/lib/libflexmem_cuda.so
	tr '\n' ' ' < "$dest$prefix/include/flexmem_cuda.h" |
		grep -o 'FLEXMEM_API[^(]*(' | grep -o '[a-z_]* *($' |
		tr -d ' (' | sort > "$build/header.txt"
	nm -D --defined-only "$library" | sed -n 's/.* T \(.*\)@@FLEXMEM_CUDA_0\.3$/\1/p' |
		grep -v '^flexmem_cuda_torch_' | sort | diff "$build/header.txt" - &&
	! nm -D --defined-only "$library" | grep -v "FLEXMEM_CUDA_0\.3$" &&
	! readelf -d "$library" | grep NEEDED | grep -vE '(lib(c|m|gcc_s|stdc\+\+)|ld-linux.*)\.so'
}

soname() {
	readelf -d "$dest$prefix/lib/libflexmem.so" |
		grep -q 'SONAME.*\[libflexmem.so.0\]'
}
# The library stays loaded after dlclose(): threads that used a cache clean up when they end.
stays() {
	readelf -d "$dest$prefix/lib/libflexmem.so" | grep -q 'FLAGS_1.*NODELETE'
}

prints_nothing() {
	# Only log.c and the callbacks of FLEXMEM_DEBUG may print.
	! grep -lE '\b(exit|abort|printf|puts|perror)\(' "$userlib"/src/*.c \
		"$userlib"/src/cache/*.c "$userlib"/bindings/cuda/*.c* &&
	test "$(cd "$userlib/src" && grep -l 'stderr' ./*.c cache/*.c)" = ./log.c
}

version_agrees() {
	test "$("$dest$prefix/bin/flexmem" --version)" = \
		"flexmem $(flags --modversion)"
}

# In the Makefile of these tests each warning of the other compiler is an error.
warnings() {
	compiler=${CC:-cc}
	! command -v clang > /dev/null || compiler=clang
	make -s -C "$userlib" O="$build/warn" CC="$compiler" \
		CFLAGS='-O0 -Werror' all
}

# "make uninstall" leaves other files in shared directories alone, and does nothing if nothing is installed.
uninstalls() {
	gone=$build/uninstall
	theirs='bin/other lib/libother.so lib/libflexmem.so.9 include/linux/other.h
		share/man/man3/other.3 share/doc/flexmem/mine'
	rm -rf "$gone"
	make -s -C "$userlib" O="$build/shipped" install DESTDIR="$gone" \
		prefix=$prefix || return 1
	for file in $theirs; do
		: > "$gone$prefix/$file" || return 1
	done
	make -s -C "$here/../.." uninstall DESTDIR="$gone" prefix=$prefix &&
	(cd "$gone$prefix" && find . ! -type d | sort) > "$build/left.txt" &&
	printf './%s\n' $theirs | sort | diff - "$build/left.txt" || return 1
	rm "$gone$prefix/share/doc/flexmem/mine" &&
	make -s -C "$userlib" uninstall DESTDIR="$gone" prefix=$prefix &&
	test ! -e "$gone$prefix/share/doc/flexmem" &&
	make -s -C "$userlib" uninstall DESTDIR="$gone" prefix=$prefix
}

cleans() {
	make -s -C "$userlib" O="$build/warn" clean &&
	test -z "$(find "$build/warn" -type f -o -type l)"
}

check installs_into_destdir installs
check program_shared shared_program
check program_static static_program
check program_uninstalled uninstalled_program
if command -v systemd-sysusers > /dev/null && command -v modprobe > /dev/null
then
	check system_files_are_taken system_files
else
	number=$((number + 1))
	echo "ok $number - system_files_are_taken # SKIP no systemd here"
fi
check example_fails_without_an_address example_fails
check missing_headers_are_named names_missing_headers
check known_kernels_are_named names_known_kernels
for header in flexmem flexmem_cache flexmem_cuda; do
	check ${header}_alone_c11 header_alone c $header.h \
		${CC:-cc} -std=c11 "$build/alone.c"
	check ${header}_alone_cxx header_alone cc $header.h \
		${CXX:-c++} "$build/alone.cc"
	check ${header}_alone_cxx11 header_alone cc $header.h \
		${CXX:-c++} -std=c++11 "$build/alone.cc"
done
check headers_in_a_program_of_cxx program_of_cxx
check helper_without_a_descriptor last_descriptor
check header_beside_the_uapi_header header_beside_uapi
check symbols_are_those_of_the_map symbols_are_the_map
check symbols_are_those_of_the_header symbols_are_the_header
check nothing_else_is_exported nothing_else_is_exported
check versions_of_symbols_stay versions_stay
check names_of_the_static_library static_names
check library_for_gpus cuda_library
check soname soname
check stays_when_it_is_closed stays
check prints_nothing_and_never_exits prints_nothing
check versions_agree version_agrees
check no_warning_with_clang warnings
check make_uninstall uninstalls
check make_clean cleans
echo "1..$number"
exit $failed
