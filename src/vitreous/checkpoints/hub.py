"""Checkpoints on the Hugging Face hub: OWNER/NAME, downloaded once, then taken from the cache."""

import re
from pathlib import Path

from vitreous.errors import CheckpointError

__all__ = ["fetch", "is_hub_name"]

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def is_hub_name(place: str | Path) -> bool:
    """Whether this can only be a repository: text of the form OWNER/NAME that is no path here.

    >>> is_hub_name("owner/name"), is_hub_name("./name"), is_hub_name(Path("owner/name"))
    (True, False, False)
    """
    return isinstance(place, str) and NAME.fullmatch(place) is not None and not Path(place).exists()


def fetch(name: str, files: tuple[str, ...], revision: str | None = None) -> Path:
    """The local folder with these files of a repository, whole or not at all.

    Where the hub cannot be reached, the cache answers if it has them. Needs the extra
    `vitreous[hub]`; the server is `HF_ENDPOINT`'s. Raises CheckpointError.
    """
    try:
        import huggingface_hub
    except ImportError as error:
        raise CheckpointError(
            f"{name}: there is no such folder here; to look on the hub, pip install 'vitreous[hub]'"
        ) from error
    try:
        # All files of one commit: the first answer says which, also if the branch moves meanwhile.
        places = [Path(huggingface_hub.hf_hub_download(name, files[0], revision=revision))]
        commit = places[0].parent.name
        places += [
            Path(huggingface_hub.hf_hub_download(name, file, revision=commit)) for file in files[1:]
        ]
    # The client raises its own errors, those of its HTTP library, OSError and ValueError.
    except Exception as error:
        raise CheckpointError(refusal(name, revision, error)) from error
    return places[0].parent


def refusal(name: str, revision: str | None, error: Exception) -> str:
    """Why nothing came, in a sentence that says what to do."""
    from huggingface_hub import constants, errors

    where = f"{name}: there is no such folder here, and the hub ({constants.ENDPOINT})"
    if isinstance(error, errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled):
        return f"{where} could not be reached, nor does its cache hold it; go online once"
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{where} has no revision {revision!r} of it"
    if isinstance(error, errors.GatedRepoError):
        return f"{where} wants a licence accepted or a token: hf auth login"
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"{where} shows no such repository; a private one needs a token: hf auth login"
    if isinstance(error, errors.EntryNotFoundError):
        return f"{where} has it without the files of a checkpoint of ours: {first_line(error)}"
    return f"{where} did not give it: {first_line(error)}"


def first_line(error: Exception) -> str:
    """The first line of an error's text that says anything."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
