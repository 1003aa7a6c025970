#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates every view of the contract from its TOML source.

Usage: gen_contract.py heddle.toml GEN_DIR DOC_DIR [--check]

Writes <name>_contract_pkg.sv, <name>_contract.h, <name>_wire.h, <name>_text.h
and <name>_uet.lua to GEN_DIR and contract.md to DOC_DIR; from uet_profile.toml
beside heddle.toml, <name>_uet_profile.h and uet-profile.md; from settings.toml,
<name>_settings.h, <name>_setting_table.h and settings.md. With --check nothing is
written; the exit status is 1 if a file differs from what would be generated, which is what the tests run.
The program refuses a contract that two readers could understand differently.
"""

import pathlib
import sys

from generator import cc, lua, markdown, model, profile, settings, systemverilog, text_cc, wire_cc


PROFILE = "uet_profile.toml"
SETTINGS = "settings.toml"


def views(spec, profiles, table, source, gen_dir, doc_dir):
    name = spec["contract"]["name"]
    return {
        gen_dir / f"{name}_contract_pkg.sv": systemverilog.generate(spec, source),
        gen_dir / f"{name}_contract.h": cc.generate(spec, source),
        gen_dir / f"{name}_wire.h": wire_cc.generate(spec, source),
        gen_dir / f"{name}_text.h": text_cc.generate(spec, source),
        gen_dir / f"{name}_uet.lua": lua.generate(spec, source),
        doc_dir / "contract.md": markdown.generate(spec, source),
        gen_dir / f"{name}_uet_profile.h": profile.header(profiles, PROFILE),
        doc_dir / "uet-profile.md": profile.page(profiles, PROFILE),
        gen_dir / f"{name}_settings.h": settings.struct(table, SETTINGS),
        gen_dir / f"{name}_setting_table.h": settings.rows_header(table, SETTINGS),
        doc_dir / "settings.md": settings.page(table, SETTINGS),
    }


def main(arguments):
    check = "--check" in arguments
    paths = [pathlib.Path(a) for a in arguments if a != "--check"]
    if len(paths) != 3:
        sys.exit(__doc__)
    source, gen_dir, doc_dir = paths
    try:
        spec = model.load(source)
        profiles = profile.load(source.with_name(PROFILE))
        table = settings.load(source.with_name(SETTINGS), spec)
    except (model.ContractError, profile.ProfileError, settings.SettingsError) as error:
        sys.exit(f"{source}: {error}")
    stale = []
    for path, text in views(spec, profiles, table, source.name, gen_dir, doc_dir).items():
        if path.exists() and path.read_text() == text:
            continue  # Its date stays, and what was built from it.
        stale.append(path.name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if check and stale:
        sys.exit(f"stale generated files: {', '.join(stale)}; run `make contract`")


if __name__ == "__main__":
    main(sys.argv[1:])
