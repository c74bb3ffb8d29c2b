"""When is a file of a tenant's rules seen as another one?"""

import asyncio
from pathlib import Path

from tidegate.config.rulefiles import RulesDir, folder_state
from tidegate.gateway.filewatch import RulesWatch


def test_each_file_rests_for_itself_and_counts_once(tmp_path: Path) -> None:
    async def body() -> None:
        (tmp_path / "quiet.yaml").write_text("a")
        watch = RulesWatch(RulesDir(tmp_path, folder_state(tmp_path)))
        assert [await watch.changed() for _ in range(3)] == [False] * 3
        (tmp_path / "quiet.yaml").write_text("another")
        seen = []
        for number in range(4):
            # Beside it one that never rests: it must not hold the others back.
            (tmp_path / "busy.yaml").write_text("x" * number)
            seen.append(await watch.changed())
        assert seen == [False, True, False, False]
        assert [await watch.changed() for _ in range(3)] == [True, False, False]
        # Whoever deletes a file before the new one stands there is between two looks.
        watch = RulesWatch(RulesDir(tmp_path, folder_state(tmp_path)))
        (tmp_path / "quiet.yaml").unlink()
        assert await watch.changed() is False

    asyncio.run(body())


def test_a_file_and_a_folder_that_go_away_are_changes(tmp_path: Path) -> None:
    async def body() -> None:
        folder = tmp_path / "tenants"
        folder.mkdir()
        (folder / "acme.yaml").write_text("a")
        (folder / "other.yaml").write_text("b")
        watch = RulesWatch(RulesDir(folder, folder_state(folder)))
        await watch.changed()
        (folder / "acme.yaml").unlink()
        assert [await watch.changed() for _ in range(3)] == [False, True, False]
        folder.rename(tmp_path / "elsewhere")
        assert [await watch.changed() for _ in range(3)] == [False, True, False]
        (tmp_path / "elsewhere").rename(folder)
        assert [await watch.changed() for _ in range(3)] == [False, True, False]

    asyncio.run(body())


def test_without_a_folder_nothing_is_looked_at() -> None:
    assert asyncio.run(RulesWatch(RulesDir()).changed()) is False
