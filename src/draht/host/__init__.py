"""One host: containers with GPUs through podman, docker or runc.

`run` is the life of a hold, from the choice of devices (`selection`, `waiting`) over their delivery (`specs`) to their
release; `reconcile` brings the database in line with what runs. `engine` says what is needed of a container engine, and
`engines` has the adapters. `usage` and `ownership` see who else has devices, `doctor` what stops a run. `local` puts
the parts together for this machine.

Errors::

    DrahtError
    ├── EngineError                an engine refused, failed or could not be asked (drawn in `engine`)
    └── HostError                  anything else of this package
        ├── SelectionError         the machine doesn't have what was asked for
        ├── NotFreeError           it has, but somebody holds it
        ├── NotOwnerError          the hold to be released is somebody else's
        ├── HoldLostError          the hold ended under a run that was starting
        ├── OwnedError             a kubelet's plugin hands out the devices
        └── InterruptedRunError    a signal came before the container was started
"""
