"""What is in a machine: one `Inventory` value, whether it was read from a real machine or written down in a profile.

`inventory` holds the values, `topology` reads a PCIe tree, `profiles` reads machine profiles, and the providers
`simulated`, `sysfs` and `cdi` each produce an `Inventory`; `machine` joins what several of them know about one host.
`mig` is the catalogue of GPU partitions and `nvml` the contract of the provider that asks NVIDIA's library.

Errors::

    DrahtError
    └── HardwareError
        ├── UnknownProfileError   no profile of that name is shipped, and no file of that name exists
        └── ProfileError          a profile's text, with every problem in ``problems``
"""
