#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Tests the commands that README, pages and man pages show, as they are printed, and what `make demo`
# shows. The commands of install.rst install flexmem. The script then tests which users can open a node, runs the
# removal that install.rst shows, and tests that no file is left. Prints several streams of TAP. The arguments are those
# of Documentation/blocks.py. With arguments it runs only the commands that they name, and neither the demo nor the
# removal, which takes a minute. The arguments must include the commands of README and install.rst about the node.
# usage: tests/vm/run.sh 6.12 --no-load -- tests/vm/docs.sh [PAGE[:FIRST WORDS]...]
# These commands must have run before, as in tests/check.sh docs: make, make -C tests/selftests, and
# python3 Documentation/blocks.py host
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

# Programs must find the library only through what gets installed.
unset LD_LIBRARY_PATH PKG_CONFIG_PATH
bin=$(mktemp -d)
export PATH=$bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# In the virtual machine everything runs as root, the headers come from no package, and the modules are built already.
headers=$(readlink -f -- "$BUILD/kernels/$FLEXMEM_KERNEL/headers")
mkdir -p "/lib/modules/$(uname -r)"
ln -sfn "$headers" "/lib/modules/$(uname -r)/build"
cat >"$bin/sudo" <<'END'
#!/usr/bin/env bash
exec env "$@"
END
cat >"$bin/dpkg-query" <<'END'
#!/usr/bin/env bash
status=0
/usr/bin/dpkg-query "$@" || status=$?
# Of the list of all packages only: a question about one package gets the true answer.
(($# > 3)) || printf 'install ok installed;%s \n' "linux-headers-$(uname -r)" pahole
exit "$status"
END
# "make modules" does nothing, because the modules for this kernel exist. On an emulated machine make needs half a
# minute to find that out, and an hour to build them. Loaded modules stay loaded, unless a block asks for others.
rm -rf "$BUILD/ko/host-$(uname -r)"
ln -s "$FLEXMEM_KERNEL" "$BUILD/ko/host-$(uname -r)"
cat >"$bin/make" <<'END'
#!/usr/bin/env bash
case ${1:-} in
modules) exit 0 ;;
modules_install) exec /usr/bin/make -o modules "MODULES_DIR=$FLEXMEM_KERNEL" "$@" ;;
vm) ;;
*) exec /usr/bin/make "$@" ;;
esac
parameters=
for word in "${@:2}"; do
	case $word in
	CMD=*) command=${word#CMD=} ;;
	SIM_PARAMS=*) parameters=${word#SIM_PARAMS=} ;;
	esac
done
if [[ $parameters ]]; then
	rmmod flexmem_sim
	# shellcheck disable=SC2086	# words of a command line
	insmod "$FLEXMEM_KO/flexmem_sim.ko" $parameters
fi
exec bash -c "$command"
END
chmod +x "$bin"/*
# Makes the cgroups of two users, because systemd, which would make them, does not run here.
mkdir -p /sys/fs/cgroup/user.slice/user-{1000,1001}.slice
/lib/systemd/systemd-udevd &
udev=$!

status=0
python3 -B Documentation/blocks.py machine "$@" || status=$?

echo 'TAP version 13'
unload() {
	local module
	for module in flexmem_sim flexmem; do
		! grep -q "^$module " /proc/modules || rmmod "$module"
	done
}
unload
insmod "$FLEXMEM_KO/flexmem.ko"
insmod "$FLEXMEM_KO/flexmem_sim.ko" slots=8
udevadm settle
(($#)) || tap 'what make demo shows' tests/vm/demo.sh

# The commands of the pages above have installed the library, the command, the group and the udev rule.
command=/usr/local/bin/flexmem
group=$(getent group flexmem | cut -d: -f3)
user() { setpriv --reuid 4711 --regid 4711 --groups "$1" env -C / "${@:2}"; }
node() { "$command" --device "$1" info --json | jq -r .device; }
modes() { [[ $(stat -c '%a %G' "$(node VF)") == '660 flexmem' && $(stat -c '%a %G' "$(node PF)") == '600 root' ]]; }
# Repeats a test until udev has read the changed rules: udev looks for them when a device has an event, at most every
# three seconds. A request to reload the rules would not take effect at once, and udev may drop it.
in_time() {
	local try
	for ((try = 0; try < 20; try++)); do
		! "$@" || return 0
		sleep 1
		udevadm trigger --subsystem-match=flexmem --settle
	done
	return 1
}
# Whether the link below /dev/flexmem/by-id leads to the node, for each function. The simulator's bus has no paths.
linked() {
	local id path found=
	while read -r id path; do
		found=1
		[[ $(readlink -f "/dev/flexmem/by-id/$id") == "$path" ]] || { echo "$id is not $path" && return 1; }
	done < <("$command" list --json | jq -r '.functions[] | "\(.id) \(.node)"')
	[[ $found ]]
}
member() { [[ $(user "$group" "$command" alloc 1MiB --hold 0) == 'handle 1  address 0:0x0 '* ]]; }
outsider() {
	local said
	! said=$(user 4711 "$command" info 2>&1) || return 1
	echo "$said"
	[[ $said == *"$(node VF) is for the group 'flexmem': 'sudo usermod -aG flexmem USER'"* ]]
}
tap 'the rule gives the node of a VF to the group, and only that' in_time modes
tap 'each node has a link by its id' in_time linked
tap 'an ordinary user in the group allocates' member
tap 'one outside it is told which group' outsider
tap_end || status=$?
unload
kill "$udev"
wait "$udev" || true
((!$#)) || exit "$status"

python3 -B Documentation/blocks.py machine 'install.rst:sudo rmmod' || status=$?
tap_count=0 tap_failures=0
removed() {
	local left
	left=$(find /usr/local /usr/src /etc/modprobe.d "/lib/modules/$(uname -r)" -xdev ! -type d -path '*flexmem*')
	echo "$left"
	[[ ! $left ]] && ! grep -q '^flexmem' /proc/modules
}
echo 'TAP version 13'
tap 'all that was installed is removed as the page says' removed
tap_end && ((!status))
