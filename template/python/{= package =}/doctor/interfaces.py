"""How this backend handles each virtual function that PyTorch calls.

A virtual function is overridden, or declined with a reason. The audit fails for all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Interface:
    """A PyTorch class and how this backend handles its virtual functions.

    ``overridden`` and the values of ``declined`` are names separated by blanks; the keys of
    ``declined`` are reasons. Functions that ``through``, a class of the same header, overrides are
    not listed here. ``feature`` is the feature that has the overrides. ``recent`` classes do not
    exist in older releases of PyTorch.
    """

    name: str
    header: str
    page: str
    overridden: str = ""
    declined: Mapping[str, str] = field(default_factory=dict)
    through: str | None = None
    feature: str | None = None
    recent: bool = False

    def reason(self, virtual: str) -> str | None:
        """Return why a virtual function is declined, or None if it is not declined."""
        for reason, names in self.declined.items():
            if virtual in names.split():
                return reason
        return None


PINNED = "the owner of pinned memory keeps it alive while a graph copies from it"

INTERFACES = (
    Interface(
        "DeviceGuardImplInterface",
        "c10/core/impl/DeviceGuardImplInterface.h",
        "architecture.md",
        """
        type exchangeDevice getDevice setDevice uncheckedSetDevice deviceCount synchronizeDevice
        getDeviceCapability getStream getDefaultStream getStreamFromGlobalPool getNewStream
        exchangeStream getStreamNativeHandle queryStream synchronizeStream record block queryEvent
        synchronizeEvent destroyEvent elapsedTime recordDataPtrOnStream isStreamCapturing
        """,
    ),
    Interface(
        "AcceleratorHooksInterface",
        "ATen/detail/AcceleratorHooksInterface.h",
        "architecture.md",
        """
        isBuilt isAvailable hasPrimaryContext init deviceCount setCurrentDevice getCurrentDevice
        exchangeDevice maybeExchangeDevice isPinnedPtr getPinnedMemoryAllocator getDeviceFromPtr
        getDefaultGenerator getNewGenerator
        """,
    ),
    Interface(
        "PrivateUse1HooksInterface",
        "ATen/detail/PrivateUse1HooksInterface.h",
        "architecture.md",
        "resizePrivateUse1Bytes",
    ),
    Interface(
        "Allocator",
        "c10/core/Allocator.h",
        "architecture.md",
        "allocate raw_deleter copy_data",
        {"PyTorch's version is correct: a block's context is its address": "is_simple_data_ptr"},
    ),
    Interface(
        "DeviceAllocator",
        "c10/core/CachingDeviceAllocator.h",
        "architecture.md",
        """
        initialized emptyCache recordStream getDeviceStats resetAccumulatedStats resetPeakStats
        getMemoryInfo
        """,
    ),
    Interface(
        "HostAllocator",
        "ATen/core/CachingHostAllocator.h",
        "architecture.md",
        through="CachingHostAllocatorInterface",
    ),
    Interface(
        "CachingHostAllocatorImpl",
        "ATen/core/CachingHostAllocator.h",
        "architecture.md",
        "allocate_host_memory free_block record_stream query_event",
        {
            "PyTorch's cache implements it": """
                allocate free record_event empty_cache add_allocated_block get_free_block
                process_events process_events_for_specific_size pinned_use_background_threads
                pinned_max_round_threshold pinned_max_cached_size
            """,
            "PyTorch makes no lazy copies of pinned tensors": "copy_data",
            PINNED: "get_current_stream stream_is_capturing",
        },
    ),
    Interface(
        "GeneratorImpl",
        "c10/core/GeneratorImpl.h",
        "features/rng.md",
        """
        set_current_seed current_seed seed set_offset get_offset set_state get_state
        graphsafe_set_state graphsafe_get_state clone_impl
        """,
        {"only kernels written in Python use it, and there are none": "philox_state"},
        feature="rng",
    ),
    Interface(
        "GraphImplInterface",
        "ATen/core/GraphImplInterface.h",
        "features/graphs.md",
        """
        capture_begin capture_end instantiate replay reset pool enable_debug_mode debug_dump
        """,
        feature="graphs",
        recent=True,
    ),
    Interface(
        "ProfilerStubs",
        "torch/csrc/profiler/stubs/base.h",
        "features/doctor.md",
        "record elapsed mark rangePush rangePop enabled onEachDevice synchronize",
    ),
    Interface(
        "Backend",
        "torch/csrc/distributed/c10d/Backend.hpp",
        "features/distributed.md",
        """
        getBackendName supportsCoalescing supportsSplitting split getBackendOptions setTimeout
        setSequenceNumberForGroup getSequenceNumberForGroup abort shutdown startCoalescing
        endCoalescing broadcast allreduce allreduce_coalesced reduce allgather _allgather_base
        allgather_coalesced allgather_into_tensor_coalesced gather scatter reduce_scatter
        _reduce_scatter_base reduce_scatter_tensor_coalesced alltoall_base alltoall send recv
        recvAnysource barrier
        """,
        {
            "collectives do not support sparse tensors": "allreduce_sparse",
            "only Gloo supports it": "monitoredBarrier",
            "groups neither shrink nor merge": """
                supportsShrinking shrink merge supportsReconfigure get_reconfigure_handle
                reconfigure
            """,
            "the allocator manages memory": """
                getMemAllocator allocateTensor supportsTensorAlloc getMemoryStats suspend resume
                supportsWindow new_window
            """,
            "the record of collectives has no times of the device": """
                supportsTimeEstimation startTimeEstimate endTimeEstimate enableCollectivesTiming
                registerOnCompletionHook waitForPendingWorks
            """,
            "PyTorch's version is correct": """
                isInitialized setGroupUid eagerConnectSingleDevice getBoundDeviceId setBoundDeviceId
                getError supportsAbortHooks registerAbortHook unregisterAbortHook
                supportsCompletionHooks registerCompletionHook unregisterCompletionHook
                addEphemeralTimeout
                all_gather_single all_gather_single_coalesced gather_single gather_into_tensor
                reduce_scatter_single reduce_scatter_single_coalesced all_to_all_single
            """,
        },
        feature="distributed",
    ),
    Interface(
        "Work",
        "torch/csrc/distributed/c10d/Work.hpp",
        "features/distributed.md",
        """
        isCompleted isSuccess exception sourceRank result synchronize wait blockCurrentStream
        getFuture getSequencenumber
        """,
        {
            "a whole group is aborted, not a single work": "abort",
            "the record of collectives has no times of the device": "getDuration getTimeout",
            "failures are raised with the device's results": "getFutureResult",
            "only completion hooks use it": "getCompletionKey",
        },
        feature="distributed",
    ),
)
