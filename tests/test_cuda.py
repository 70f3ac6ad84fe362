"""Games on a GPU: the kernels compile for one, and play the games of the CPU.

Without a GPU, a loop runs the work of each CUDA thread on tensors of the CPU.
"""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from busenv.batch import cuda_batch
from busenv.batch.batch import Batch
from busenv.batch.cuda_batch import CudaBatch
from busenv.core import cuda_kernels
from busenv.core.bots import GREEDY
from busenv.core.state import GAME
from busenv.envs.cuda_vector import CudaVectorEnv
from busenv.envs.vector import BusVectorEnv, make_vector
from busenv.train.expert_iteration import lockstep, lockstep_run
from busenv.train.expert_iteration.expert_config import SelfPlayConfig
from busenv.train.expert_iteration.expert_selfplay import SearchPlay, draw_games
from busenv.train.expert_iteration.lockstep_run import play_in_lockstep
from tests.support.networks import CITY, small_network
from tests.support.training import RULES

HAS_NUMBA_CUDA = importlib.util.find_spec("numba_cuda") is not None
HAS_GPU = HAS_NUMBA_CUDA and torch.cuda.is_available()

SETTINGS: list[dict[str, Any]] = [
    {"opponents": None, "reward": "shaped", "autoreset_mode": "SameStep", "num_players": [3, 4, 5]},
    {"opponents": "greedy", "reward": "margin", "illegal": "lose", "num_players": 3},
    {
        "opponents": ("random", "greedy", "random"), "learner_seat": 2, "reward": "rank",
        "illegal": "replace", "relative_types": True, "autoreset_mode": "SameStep",
        "board": "generated:small:train:5",
    },
    {
        "opponents": None, "illegal": "lose", "autoreset_mode": "SameStep", "relative_types": True,
        "rules": "splotter-1999", "reward": "deliveries", "board": ["city", "generated:city:7"],
    },
    {
        "opponents": "random", "skip_forced": True, "illegal": "replace", "num_players": [3, 5],
        "rules": "condensed", "relative_types": True,
    },
    {"opponents": None, "autoreset_mode": "Disabled", "illegal": "replace", "skip_forced": True},
]  # fmt: skip


class LoopLauncher:
    """Replaces `cuda_batch.Launcher`: runs the work of all threads in a loop."""

    def __init__(self, num_games: int, *_arguments: Any) -> None:
        self.num_games = num_games

    def step(self, *arguments: Any) -> None:
        for i in range(self.num_games):
            cuda_kernels.step_game(*arguments, i)

    def reset(self, *arguments: Any) -> None:
        for i in range(self.num_games):
            cuda_kernels.reset_game(*arguments, i)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_batch, "Launcher", LoopLauncher)
    monkeypatch.setattr(cuda_batch, "find_device", lambda: torch.device("cpu"))


def assert_equal(name: str, ours: Any, theirs: Any) -> None:
    """Compare a tensor with an array: dtype, shape and every byte."""
    array = ours.cpu().numpy()
    assert (array.dtype, array.shape) == (theirs.dtype, theirs.shape), name
    assert array.tobytes() == np.ascontiguousarray(theirs).tobytes(), name


def assert_equal_info(ours: dict[str, Any], theirs: dict[str, Any], ended: np.ndarray) -> None:
    finals = {"final_obs", "_final_obs", "final_info", "_final_info"}
    assert ours.keys() - finals == theirs.keys() - finals
    for name in theirs.keys() - finals:
        assert_equal(name, ours[name], theirs[name])
    if ended.any() and "final_info" in theirs:
        rows = ours["final_obs"].cpu().numpy()
        assert all((rows[i] == theirs["final_obs"][i]).all() for i in np.flatnonzero(ended))
        assert ours["final_info"].keys() == theirs["final_info"].keys()
        for name, value in theirs["final_info"].items():
            assert_equal(name, ours["final_info"][name], value)
        for name in ("_final_obs", "_final_info"):
            assert_equal(name, ours[name], theirs[name])


def compare(settings: dict[str, Any], num_envs: int, steps: int) -> int:
    """Play random actions, some of them illegal, on both devices; returns the games that ended."""
    cuda = CudaVectorEnv(num_envs, **settings)
    cpu = BusVectorEnv(num_envs, **{"illegal": "replace", **settings})
    disabled = settings.get("autoreset_mode") == "Disabled"
    rng, ended = np.random.default_rng(0), 0
    observations, info = cpu.reset(seed=3)
    cuda_observations, cuda_info = cuda.reset(seed=3)
    over = np.zeros(num_envs, np.bool_)
    for step in range(steps):
        assert_equal("observations", cuda_observations, observations)
        assert_equal_info(cuda_info, info, over)
        for name in ("games", "final_games"):
            array = getattr(cuda.batch, name).cpu().numpy().view(GAME)[:, 0]
            assert array.tobytes() == getattr(cpu.batch, name).tobytes(), name
        assert_equal("seat_owners", cuda.batch.seat_owners, cpu.batch.seat_owners)
        if disabled and over.any():
            options = {"reset_mask": over}
            observations, info = cpu.reset(options=options)
            if step % 2:
                options = {"reset_mask": torch.from_numpy(over).to(cuda.device)}
            cuda_observations, cuda_info = cuda.reset(options=options)
            over = np.zeros(num_envs, np.bool_)
            continue
        masks = cpu.batch.masks
        actions = (rng.random(masks.shape) * masks).argmax(axis=1)
        wild = rng.random(num_envs) < 0.01
        actions[wild] = rng.integers(-5, masks.shape[1] + 5, wild.sum())
        observations, rewards, over, truncations, info = cpu.step(actions)
        tensor = torch.from_numpy(actions).to(cuda.device)
        cuda_observations, *outputs, cuda_info = cuda.step(tensor)
        for name, ours, theirs in zip(
            ("rewards", "terminations", "truncations"), outputs, (rewards, over, truncations),
            strict=True,
        ):  # fmt: skip
            assert_equal(name, ours, theirs)
        ended += int(over.sum())
    return ended


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_work_of_each_thread_plays_the_games_of_the_cpu(settings: dict[str, Any]) -> None:
    assert compare(settings, num_envs=6, steps=350) > 1


@pytest.mark.skipif(not HAS_GPU, reason="needs numba-cuda and a GPU")
@pytest.mark.parametrize("settings", SETTINGS)
def test_a_gpu_plays_the_games_of_the_cpu(settings: dict[str, Any]) -> None:
    assert compare(settings, num_envs=300, steps=200) > 1


@pytest.mark.skipif(not HAS_GPU, reason="needs numba-cuda and a GPU")
def test_a_cuda_graph_captures_a_step() -> None:
    env, plain = (CudaVectorEnv(64, copy=False) for _ in range(2))
    actions = torch.zeros(64, dtype=torch.int64, device=env.device)
    for one in (env, plain):
        one.reset(seed=1)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        env.step(actions)
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        env.step(actions)
    for _ in range(50):
        graph.replay()
    for _ in range(51):  # the capture itself runs nothing
        plain.step(actions)
    assert torch.equal(env.batch.games, plain.batch.games)


@pytest.mark.usefixtures("stand_in")
def test_owners_of_seats_and_fresh_tensors() -> None:
    cuda, cpu = CudaBatch(3), Batch(3, illegal="replace")
    cuda.seat_owners[:, 1:] = GREEDY
    cpu.seat_owners[:, 1:] = GREEDY
    cuda.reset(5)
    cpu.reset(5)
    for _ in range(40):
        actions = cpu.masks.argmax(axis=1)
        cpu.step(actions)
        cuda.step(torch.from_numpy(actions))
    assert cuda.games.numpy().tobytes() == cpu.games.tobytes()
    assert (cuda.seats == 0).all()
    for copy in (True, False):
        env = CudaVectorEnv(2, copy=copy)
        observations, _ = env.reset(seed=1)
        assert (observations.data_ptr() == env.batch.observations.data_ptr()) is not copy
        assert (env.action_masks().data_ptr() == env.batch.masks.data_ptr()) is not copy


@pytest.mark.usefixtures("stand_in")
def test_games_continue_from_a_state_of_the_cpu() -> None:
    settings: dict[str, Any] = {
        "num_players": (3, 5), "relative_types": True, "reward": "margin", "illegal": "replace",
    }  # fmt: skip
    ours, theirs = CudaBatch(8, **settings), Batch(8, **settings)
    theirs.reset(3)
    for step in range(220):
        if step % 50 == 9:
            ours.restore(theirs.state())
            assert all(
                ours.state()[name].tobytes() == array.tobytes()
                for name, array in theirs.state().items()
            )
        theirs.step(np.full(8, -1))
        if step >= 9:
            ours.step(torch.full((8,), -1))
            for name in ("observations", "masks", "seats", "rewards", "terminations"):
                assert_equal(name, getattr(ours, name), getattr(theirs, name))
    assert theirs.final_games["players"].all()
    with pytest.raises(ValueError, match="board_index of the state has a value outside of 0 to 0"):
        ours.restore(theirs.state() | {"board_index": np.ones(8, np.int64)})


@pytest.mark.usefixtures("stand_in")
def test_wrong_calls_are_refused() -> None:
    env = CudaVectorEnv(2)
    zeros = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"call reset\(seed\) before step"):
        env.step(zeros)
    with pytest.raises(ValueError, match=r"call reset\(seed\) for all games first"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=1)
    for actions in (zeros[:1], zeros.float(), zeros.numpy(), zeros.to("meta")):
        with pytest.raises(ValueError, match=r"allowed: a tensor of whole numbers of shape \(2,\)"):
            env.step(actions)
    for mask in (torch.ones(3, dtype=torch.bool), zeros):
        with pytest.raises(ValueError, match="the mask of games to reset"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="seed is 1844"):
        env.reset(seed=2**64)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"illegal": "raise"}, 'illegal is "raise".*use "replace" or "lose"'),
        ({"illegal": "skip"}, "illegal is 'skip'; allowed"),
        ({"opponents": "planner"}, "the opponent 'planner' cannot run on a GPU: use None"),
        ({"opponents": ("greedy", "greedy", object())}, "the opponent <object.*cannot run"),
        ({"opponents": ("greedy", "greedy", None)}, "the opponent None cannot run"),
        ({"reward": lambda before, after, rewards: None}, "reward is a function, .*the name of a"),
        ({"num_players": 6}, "6"),
        ({"device": "cuda:1"}, "device is 'cuda:1'; allowed: cpu, cuda"),
        ({"device": None}, "device is None; allowed: cpu, cuda"),
    ],
)
@pytest.mark.usefixtures("stand_in")
def test_unsupported_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        make_vector(2, **{"device": "cuda", **settings})
    assert ". " not in str(raised.value)  # one sentence


@pytest.mark.skipif(HAS_GPU, reason="for machines without a GPU")
@pytest.mark.parametrize("name", ["busenv/Bus-v0", "busenv/BusSelfPlay-v0"])
def test_a_missing_gpu_is_reported(name: str) -> None:
    error = ValueError if HAS_NUMBA_CUDA else ModuleNotFoundError
    message = "PyTorch finds no CUDA GPU" if HAS_NUMBA_CUDA else "install the extra cuda"
    with pytest.raises(error, match=message):
        gymnasium.make_vec(name, num_envs=4, device="cuda")


PLAIN = """import sys, gymnasium, busenv
env = gymnasium.make_vec("busenv/BusSelfPlay-v0", num_envs=2, device="cpu")
env.reset(seed=1)
loaded = {name for name in sys.modules if name.split(".")[0] in ("torch", "numba_cuda")}
print(sorted(loaded | {name for name in sys.modules if name.startswith("numba.cuda")}))
for blocked in BLOCKED:
    sys.modules[blocked] = None
try:
    gymnasium.make_vec("busenv/Bus-v0", num_envs=2, device="cuda")
except ModuleNotFoundError as error:
    print(error.name, error)
"""


def test_the_cpu_needs_neither_torch_nor_numba_cuda() -> None:
    program = PLAIN.replace("BLOCKED", "['torch']")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded, error = done.stdout.splitlines()
    assert loaded == "[]"
    assert error == 'torch device="cuda" requires PyTorch: install the extra cuda'


def test_missing_numba_cuda_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="requires numba-cuda: install the extra cuda"):
        CudaVectorEnv(2)


def device_types(value: Any) -> Any:
    """The numba type of a kernel argument whose arrays are on a device."""
    from numba import typeof, types
    from numba.cuda.np import numpy_support

    if isinstance(value, np.ndarray):
        return types.Array(numpy_support.from_dtype(value.dtype), value.ndim, "C")
    if isinstance(value, tuple):
        return types.NamedTuple([device_types(one) for one in value], type(value))
    return typeof(value)


def find_in_wheels(pattern: str) -> Path | None:
    """A file of NVIDIA's wheels."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else None
    return next((path for one in folders or () for path in Path(one).rglob(pattern)), None)


LIBDEVICE = find_in_wheels("libdevice.10.bc") if HAS_NUMBA_CUDA else None  # of nvidia-nvvm


class H100:
    """Replaces the device that numba-cuda asks for its architecture."""

    compute_capability = (9, 0)


def compile_for_a_gpu(
    kernel: Any, arguments: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> str:
    """Compile and assemble a kernel without a driver; returns its PTX.

    Asserts that no registers spill.
    """
    from numba import cuda
    from numba.cuda import dispatcher
    from numba.cuda.cudadrv import nvrtc, nvvm

    # numba-cuda would ask the driver and NVRTC, a large library, for these.
    monkeypatch.setattr(dispatcher, "get_current_device", H100)
    monkeypatch.setattr(nvrtc, "get_arch_option", lambda *_: "compute_90")
    monkeypatch.setattr(nvvm.LibDevice, "_cache_", LIBDEVICE and LIBDEVICE.read_bytes())
    types = tuple(device_types(argument) for argument in arguments)
    with cuda_kernels.exact_floats():
        ptx: str = cuda.compile_ptx(kernel.py_func, types, cc=(9, 0))[0]
    if ptxas := find_in_wheels("bin/ptxas"):  # of nvidia-cuda-nvcc
        (folder / "kernel.ptx").write_text(ptx)
        command = [ptxas, "-v", "-arch=sm_90", "kernel.ptx", "-o", "kernel.cubin"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0
        spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", done.stderr)
        assert spills
        assert set(spills) == {"0"}
        assert max(map(int, re.findall(r"Used (\d+) registers", done.stderr))) <= 255
    return ptx


@pytest.mark.slow
@pytest.mark.skipif(LIBDEVICE is None, reason="needs numba-cuda and NVVM")
@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("name", ["step", "reset"])
def test_kernels_compile_for_a_gpu(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    batch = CudaBatch(2, autoreset_mode="SameStep")
    arguments: dict[str, Callable[[], tuple[Any, ...]]] = {
        "step": lambda: batch._step_arguments,
        "reset": lambda: (*batch._reset_arguments, *cuda_batch._seeding(None)),
    }
    kernel = dict(zip(("step", "reset"), cuda_kernels.device_kernels(), strict=True))[name]
    ptx = compile_for_a_gpu(kernel, arguments[name](), monkeypatch, tmp_path)
    # Fused operations would round differently from the CPU's; without ".rn" the assembler fuses.
    assert not re.findall(r"\bfma\.\S+", ptx)
    assert re.findall(r"\bmul\.rn\.f64", ptx)
    assert not re.findall(r"\b(?:mul|add|sub)\.f(?:32|64)", ptx)


@pytest.mark.slow
@pytest.mark.skipif(LIBDEVICE is None, reason="needs numba-cuda and NVVM")
def test_self_play_compiles_for_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def compile_only(_: torch.device, arguments: tuple[Any, ...]) -> None:
        compile_for_a_gpu(lockstep.device_kernel(), arguments, monkeypatch, tmp_path)
        raise StopIteration  # instead of playing

    monkeypatch.setattr(lockstep_run, "_make_advance", compile_only)
    games = draw_games(SelfPlayConfig(bot_share=0.0), 2, RULES, CITY, np.random.default_rng(0))
    with pytest.raises(StopIteration):
        play_in_lockstep(
            games, small_network(), SearchPlay(4, 2, 0.5, 1), CITY,
            slots=2, device=torch.device("cpu"),
        )  # fmt: skip
