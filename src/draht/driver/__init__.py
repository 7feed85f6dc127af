"""The machine's database of holds, and how a device is prepared.

Errors::

    DrahtError
    └── DriverError
        ├── StateError            the database can't be used (permissions, full disk, read-only file system, locked)
        │   ├── NewerSchemaError  it was written by a newer draht
        │   └── StateLostError    it became unreadable while it was used; it has been moved aside
        └── HeldError             a device was to be held that is held already
"""
