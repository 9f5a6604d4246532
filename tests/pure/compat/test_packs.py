"""What a pack finds when it is imported, and what becomes of one that goes wrong."""

from __future__ import annotations

import importlib
import sys

import pytest

from app.compat.packs import load_within_time
from tests.pure.compat.conftest import Load, pack_of

EMPTY = "NODE_CLASS_MAPPINGS = {}\n"


def test_import_nodes_is_the_face_in_a_pack_and_this_programs_package_elsewhere(load: Load) -> None:
    here = load({
        "one/__init__.py": "import nodes\nfrom .part import M\nBOTH = (nodes.MAX_RESOLUTION, M)\n" + EMPTY,
        "one/part.py": "from nodes import MAX_RESOLUTION as M\n",
        "typed.py": "from nodes.declare import node\nimport nodes.spec\nOURS = nodes.__path__\n" + EMPTY,
    })  # fmt: skip
    assert [pack.error for pack in here.registry.packs] == [None, None]
    module = next(m for name, m in sys.modules.items() if name.endswith("custom_nodes/one"))
    assert module.BOTH == (16384, 16384)
    import nodes

    assert not hasattr(nodes, "MAX_RESOLUTION")


def test_modules_that_a_pack_puts_on_the_path_see_the_face_too(load: Load) -> None:
    here = load({
        "lib/__init__.py": (
            "import os, sys\nsys.path.append(os.path.dirname(__file__))\n"
            "import part_on_the_path\nassert part_on_the_path.MAX == 16384\nsys.path.pop()\n" + EMPTY
        ),
        "lib/part_on_the_path.py": "from nodes import MAX_RESOLUTION as MAX\n",
    })  # fmt: skip
    assert pack_of(here, "lib").error is None
    del sys.modules["part_on_the_path"]


def test_import_module_answers_packs_with_the_face_and_others_with_this_programs_package(load: Load) -> None:
    code = (
        "import importlib\nfrom importlib import import_module\n"
        "for get in (importlib.import_module, import_module, __import__):\n"
        "    assert get('nodes').MAX_RESOLUTION == 16384, get\n"
        "assert importlib.import_module('folder_paths').get_output_directory()\n"
        "def at_run_time():\n    return importlib.import_module('nodes').MAX_RESOLUTION\n"
    )
    here = load({"late/__init__.py": code + EMPTY + "from . import part\n", "late/part.py": code})
    assert pack_of(here, "late").error is None
    module = next(m for name, m in sys.modules.items() if name.endswith("custom_nodes/late"))
    assert (module.at_run_time(), module.part.at_run_time()) == (16384, 16384)
    import nodes

    assert importlib.import_module("nodes") is nodes


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("from comfy_execution.graph_utils import teleport", "comfy_execution.graph_utils.teleport"),
        ("import comfy.ldm.secret", "comfy.ldm"),
        ("from nodes import NoSuchNode", "nodes.NoSuchNode"),
        ("import folder_paths\nfolder_paths.fly_away()", "folder_paths.fly_away"),
        ("from server import PromptServer\nPromptServer.instance.launch()", "PromptServer.instance.launch"),
    ],
)
def test_a_name_that_is_not_served_is_named_with_its_pack_and_costs_that_pack_only(
    load: Load, code: str, named: str
) -> None:
    here = load({"asks.py": code + "\n" + EMPTY, "good.py": EMPTY})
    error = pack_of(here, "asks").error
    assert error is not None
    assert f"does not serve {named}" in error or f"does not serve the module {named}" in error
    assert "asks" in error
    assert pack_of(here, "good").error is None


def test_a_pack_may_try_a_name_and_do_without(load: Load) -> None:
    tries = "try:\n    from comfy.ldm import anything\nexcept ImportError:\n    anything = None\n"
    probes = "import folder_paths\nassert not hasattr(folder_paths, 'fly_away')\n"
    assert pack_of(load({"tries.py": tries + probes + EMPTY}), "tries").error is None


def test_exits_in_imports_and_prestartup_scripts_end_nobody(load: Load) -> None:
    here = load({
        "exits.py": "import sys\nsys.exit(3)\n",
        "stops.py": "raise KeyboardInterrupt\n",
        "early/prestartup_script.py": "raise SystemExit(2)\n",
        "early/__init__.py": EMPTY,
        "good.py": EMPTY,
    })  # fmt: skip
    assert "SystemExit: 3" in (pack_of(here, "exits").error or "")
    assert "KeyboardInterrupt" in (pack_of(here, "stops").error or "")
    assert pack_of(here, "early").error is None
    assert pack_of(here, "good").error is None


def test_prestartup_scripts_run_before_any_pack_is_imported(load: Load) -> None:
    here = load({
        "a.py": "import os\nassert os.environ['PRESTARTED'] == 'yes'\n" + EMPTY,
        "b/__init__.py": EMPTY,
        "b/prestartup_script.py": "import os\nos.environ['PRESTARTED'] = 'yes'\n",
    })  # fmt: skip
    assert pack_of(here, "a").error is None


def test_an_import_that_never_ends_is_left_behind(load: Load) -> None:
    here = load({"good.py": EMPTY})
    path = pack_of(here, "good").path.with_name("hangs.py")
    path.write_text("import threading\nthreading.Event().wait(2)\n" + EMPTY)
    assert "not ready within" in (load_within_time(path, limit_s=0.2).error or "")


def test_web_folders_come_from_the_module_and_from_the_project(load: Load) -> None:
    here = load({
        "page/__init__.py": "WEB_DIRECTORY = './js'\n" + EMPTY,
        "page/js/a.js": "//",
        "page/more/b.js": "//",
        "page/pyproject.toml": "[project]\nname = 'page-project'\n[tool.comfy]\nweb = 'more'\n",
        "late.py": "import nodes\nnodes.EXTENSION_WEB_DIRS['late'] = '/somewhere'\n" + EMPTY,
    })  # fmt: skip
    assert sorted(here.registry.web) == ["late", "page", "page-project"]


def test_core_classes_stand_in_the_table_that_packs_look_into(load: Load) -> None:
    code = (
        "from nodes import NODE_CLASS_MAPPINGS as table\n"
        "assert 'Number' in table and 'Nothing' not in table\n"
        "kind = table['Add']\n"
        "assert kind.INPUT_TYPES()['required']['a'][0] == 'INT', kind.INPUT_TYPES()\n"
        "assert kind.RETURN_TYPES == ('INT',)\n"
        "assert 'SaveImage' in table.keys()\n"
    )
    assert pack_of(load({"table.py": code + EMPTY}), "table").error is None
