#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts the files and the return statements on the way of an ALLOC through the driver.

usage: returns.py TOP

The way has each function of flexmem.ko that the task runs for an ALLOC of one chunk. The allocation fits into a hole of an
existing region, found by first fit. The bytes in the hole are the owner's own. Inline functions of headers are not
counted. Prints the figures. Fails if a function is not in its file, if no other function of the way names it, if there
are more returns than MOST, or if these files give an ALLOC's charge back in more than one place.
"""
import pathlib
import re
import sys

MOST = 87
WAY = {
    "ioctl": "flexmem_ioctl call_command read_struct read_words cmd_alloc do_entry alloc_begin alloc_check alloc_flags "
             "alloc_reply",
    "policy": "flexmem_policy_apply is_valid_naming",
    "client": "flexmem_client_prepare make give_names flexmem_client_publish tree_of_chunk",
    "allocation": "flexmem_allocation_make create take_chunks chunk_size clean_chunks flexmem_chunk_clean "
                  "flexmem_allocation_address",
    "account": "flexmem_charge count is_over refuses flexmem_account_take recount charge_block refuses_region enter_region",
    "pressure": "flexmem_pressure_tell flexmem_pressure_succeeded",
    "placement": "flexmem_place_charge flexmem_place place_once wants_new place_in_existing nr_chances try_regions "
                 "list_candidates slots_of kind_of comes_before",
    "region": "flexmem_region_room flexmem_region_alloc set_user program_bytes",
    "block": "flexmem_blocks_find find_block flexmem_blocks_largest flexmem_blocks_take take_spare add_after inherit "
             "shrink_free mark_free unmark_free",
    "block_fit": "first_fit_find first_fit_lowest first_fit_resize",
    "scrub": "flexmem_scrub_block",
    "spare": "flexmem_spare_fill flexmem_spare_drop flexmem_stock_take",
    "handle": "flexmem_handles_add",
}


def bodies(text):
    """Returns the text of each function of a C file, without comments."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return {found[1]: found[0] for found in re.finditer(r"^(?![ \t#])(?:[^\n;{}]*[ *])?(\w+)\([^;{}]*\)\n\{.*?^\}", text,
                                                        re.DOTALL | re.MULTILINE)}


def main():
    wrong, functions, back = [], {}, 0
    for file, names in WAY.items():
        text = next(pathlib.Path(sys.argv[1], "kmod").rglob(f"{file}.c")).read_text(encoding="utf-8")
        found = bodies(text)
        # set_use() ends an ALLOC that has succeeded, if its region is lost.
        back += sum(len(re.findall(r"\bflexmem_uncharge\(", body)) for name, body in found.items()
                    if name not in ("flexmem_uncharge", "set_use"))
        wrong += [f"{file}.c has no {name}()" for name in names.split() if name not in found]
        functions |= {name: found.get(name, "") for name in names.split()}
        # A table of functions counts as a caller.
        functions[file] = "".join(re.findall(r"^(?:static )?const struct [^;]*?= \{.*?^\};", text, re.DOTALL | re.MULTILINE))
    for name in functions.keys() - WAY.keys() - {"flexmem_ioctl"}:
        if not any(re.search(rf"\b{name}\b", body) for caller, body in functions.items() if caller != name):
            wrong.append(f"nothing on the way names {name}()")
    returns = sum(len(re.findall(r"\breturn\b", functions[name])) for name in functions.keys() - WAY.keys())
    if returns > MOST:
        wrong.append(f"more than {MOST} returns")
    if back != 1:
        wrong.append("an ALLOC's charge is given back in more than one place, or nowhere")
    print("\n".join(sorted(wrong) + [f"{len(WAY)} files, {returns} returns, {back} place that gives the charge back"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
