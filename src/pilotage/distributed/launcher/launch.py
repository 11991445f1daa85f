"""From a job to its exit status."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from pilotage.distributed.environments.variables import number, port_of_job
from pilotage.distributed.interfaces import address_in
from pilotage.distributed.job_directory import JobDirectory
from pilotage.distributed.launcher.commands import command_line, description, variables
from pilotage.distributed.launcher.job import Job, Place, is_here
from pilotage.distributed.launcher.output import TaggedOutput
from pilotage.distributed.launcher.processes import Ending, Processes, Start
from pilotage.distributed.launcher.remote import check_remote_shell, chosen_remote_shell
from pilotage.errors import OptionError
from pilotage.options.environment import REMOTE_SHELL

Say = Callable[[str], None]


def launch(job: Job, *, warn: Say, inform: Say, detail: Say) -> int:
    """Start all instances, wait for them, start them again where that was asked for; returns the exit status."""
    check_before_start(job)
    status = 0
    for restart in range(job.max_restarts + 1):
        with JobDirectory.make() if job.on_one_host else nullcontext() as directory:
            status, interrupted = _attempt(job, restart, directory, warn=warn, inform=inform, detail=detail)
        if interrupted or not status:
            return status
        if restart < job.max_restarts:
            warn(f"The job is started again, for the {restart + 1}. time of at most {job.max_restarts}.")
    return status


def _attempt(
    job: Job, restart: int, directory: JobDirectory | None, *, warn: Say, inform: Say, detail: Say
) -> tuple[int, bool]:
    """Start all instances and wait for them; returns the exit status, and whether a signal has ended them."""
    places = job.places(*meeting_place(job), None if directory is None else str(directory.path))
    output = TaggedOutput(sys.stdout.buffer, sys.stderr.buffer, [_tag(job, place) for place in places])
    starts = [Start(command_line(job, place), description(job, place, restart)) for place in places]
    for place in places:
        inform(f"{place.name} goes to {place.host}: {' '.join(job.command)}")
        given = variables(job, place, restart).items()
        detail(f"{place.name} is given {' '.join(f'{name}={shlex.quote(value)}' for name, value in given)}")
    processes = Processes(starts, output)
    with processes.passing_on_signals():
        failures = processes.wait()
    if not failures:
        return 0, False
    warn(_report(failures[0], places, output))
    for other in _hidden(failures, places, output):
        warn(_report(other, places, output, also=True))
    if processes.interrupted is not None:
        return 128 + processes.interrupted, True
    return failures[0].status, False


def check_before_start(job: Job) -> None:
    """Refuse, in one line and before anything runs, what cannot go well."""
    program = job.command[0]
    if job.on_one_host:
        if shutil.which(program) is None:
            raise OptionError(f"The program {program!r} is not there, or cannot be executed. Nothing was started.")
        script = next((word for word in job.command[1:] if not word.startswith("-")), "")
        is_python = Path(program).name.startswith("python") and job.command[1:2] == (script,)
        if is_python and script.endswith(".py") and not Path(script).is_file():
            raise OptionError(f"The script {script!r} is not there. Nothing was started.")
    if REMOTE_SHELL.name in os.environ:
        # Whatever reaches the hosts may have names of its own for them.
        return
    if not job.on_one_host:
        check_remote_shell(job.remote_shell or chosen_remote_shell(os.environ), os.environ)
    for host in job.hosts:
        _check_host(host)


def meeting_place(job: Job) -> tuple[str, int]:
    """Where the instances meet: on the first host, at MASTER_PORT or a port that is free."""
    chosen = number(os.environ, "MASTER_PORT", 0)
    address = os.environ.get("MASTER_ADDR") or _address(job)
    if not is_here(job.hosts[0]):
        return address, chosen or port_of_job(f"{socket.gethostname()}.{os.getpid()}")
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind(("", chosen))
        except OSError:
            raise OptionError(
                f"The port {chosen} is taken. Set MASTER_PORT to a free one, or leave it out. Nothing was started."
            ) from None
        port: int = place.getsockname()[1]
        return address, port


def _address(job: Job) -> str:
    if job.on_one_host:
        return "127.0.0.1"
    if job.subnet is None or not is_here(job.hosts[0]):
        return job.hosts[0]
    return address_in(job.subnet)


def _check_host(host: str) -> None:
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        raise OptionError(f"The host {host!r} is not known: {error.strerror}. Nothing was started.") from None


def _tag(job: Job, place: Place) -> int | None:
    """The number in front of what a process says; None hides it."""
    rank = place.world.rank
    return rank if place.speaks and job.only_output_from in (None, rank) else None


def _hidden(failures: list[Ending], places: list[Place], output: TaggedOutput) -> list[Ending]:
    """Failures behind the first that nobody would hear of: who failed first may have noticed, and not be the one to blame."""
    told = {_last_word(failures[0], output)}
    told |= {_last_word(failure, output) for failure in failures if places[failure.process].speaks}
    found = []
    for failure in failures[1:]:
        word = _last_word(failure, output)
        if not places[failure.process].speaks and word not in told:
            found.append(failure)
            told.add(word)
    return found


def _last_word(failure: Ending, output: TaggedOutput) -> str:
    lines = output.last_lines(failure.process)
    # torch puts the number of the process before lines of a traceback.
    return re.sub(r"^\[rank\d+\]: ", "", lines[-1]) if lines else ""


def _report(ending: Ending, places: list[Place], output: TaggedOutput, *, also: bool = False) -> str:
    how = f"with status {ending.status}"
    if 128 < ending.status <= 128 + signal.NSIG:
        how = f"by signal {_signal_name(ending.status - 128)}"
    place = places[ending.process]
    first = f"{place.name} on {place.host} {'failed, too' if also else 'was the first to fail'}, {how}."
    others = " The others were ended." if len(places) > 1 and not also else ""
    lines = output.last_lines(ending.process)
    said = "\n".join(["Its last lines:", *(f"    {line}" for line in lines)]) if lines else "It said nothing."
    return f"{first}{others} {said}"


def _signal_name(number_: int) -> str:
    try:
        return signal.Signals(number_).name
    except ValueError:
        return str(number_)
