"""Devices on their way to a workload: what a driver is, the machine's database, and how a claim is prepared.

Errors::

    DrahtError
    └── DriverError
        ├── StateError              the database can't be used (permissions, full disk, read-only file system, locked)
        │   ├── NewerSchemaError    it was written by a newer draht
        │   └── StateLostError      it became unreadable while it was used; it has been moved aside
        ├── HeldError               a device was to be held that is held, or prepared for a claim, already
        └── ClaimError              a claim can't be prepared or unprepared
            ├── NotAllocatedError   nothing was allocated for it, or nothing of this driver
            ├── DeviceInUseError    somebody else has a device of it
            ├── DeviceMissingError  a device, or a file that it needs, isn't there
            ├── ParametersError     opaque parameters that the driver can't read or doesn't support
            ├── ClaimBusyError      another call has been working on it for too long
            ├── DriverFailedError   the driver's own code failed without an explanation
            └── PlacesError         a file that its containers need can't be written or removed
"""
