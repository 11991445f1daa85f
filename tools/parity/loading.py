"""Loading data."""

from __future__ import annotations

from tools.parity.rows import Sort, Table, arguments, rows

TABLES = (
    Table(
        title="DataLoader",
        of="DataLoader",
        rows=rows(works="combinedBatchSize options rebatched_drop_last terminate __len__ __iter__"),
    ),
    Table(
        title="AsynchronousDataAccessor",
        of="AsynchronousDataAccessor",
        rows=rows(works="terminate __len__ __iter__ __next__"),
    ),
    Table(
        title="Arguments of loaders",
        sort=Sort.ARGUMENTS,
        rows=arguments(
            {
                "DataLoader": "options dataset batch_size shuffle num_workers drop_last persistent_workers "
                "auto_distributed_partitioning mode async_options rebatched_worker_size batch_sampler",
                "AsynchronousDataAccessor": "dataset buffer_size miss_sleep_time_in_ms load_indefinitely early_preload "
                "sharing_strategy rebatched_size",
            }
        ),
    ),
    Table(
        title="What loaders do",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "Each item contains the samples of one call, in order": "",
                "Incomplete batches are dropped unless `drop_last=False`": "",
                "Each process gets its own part of the data set; shuffling needs `randomSeed`": "",
                "Async without `drop_last` becomes AsyncRebatched": "",
                "Items of an asynchronous loader are views of a ring buffer": "",
                "Batches of types with a parser, tuples, dictionaries and data classes are combined in every mode": "",
                "An asynchronous loader converts items to the types of the first one": "values that its type cannot "
                "hold are refused",
                "Errors in the worker are raised as PopTorch's, and an epoch can be left early": "",
            }
        ),
    ),
)
