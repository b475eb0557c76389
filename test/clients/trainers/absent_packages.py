"""Empty modules in place of packages that the HTTP clients of trainers import and do not need, such as torch."""

import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types
import typing

import typing_extensions

VERSION = "999.0"


class _AnyMember(type):
    """A class that has each attribute, which is again such a class."""

    def __getattr__(cls, name):
        return _member(name)

    def __or__(cls, other):
        return typing.Any

    __ror__ = __or__


class _Absent(metaclass=_AnyMember):
    """An instance returns the object that it decorates, and does nothing as a context."""

    def __init__(self, *args, **options):
        pass

    def __call__(self, decorated=None, *args, **options):
        return decorated

    def __getattr__(self, name):
        return _member(name)

    def __class_getitem__(cls, item):
        return cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def _member(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _AnyMember(name, (_Absent,), {})


class _AbsentModule(types.ModuleType):
    __path__ = []
    __version__ = VERSION

    def __getattr__(self, name):
        return _member(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):
        if f"{name}." in self.packages:
            spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
            spec.submodule_search_locations = _folders(name, path)
            return spec
        if any(name == package or name.startswith(f"{package}.") for package in self.packages):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _AbsentModule(spec.name)

    def exec_module(self, module):
        module.__path__ = module.__spec__.submodule_search_locations


def _folders(name, path):
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    return [] if spec is None else list(spec.submodule_search_locations)


def install(*packages):
    """Makes these packages importable, before the client of a trainer is imported.

    `a` replaces a package or a module (`a.b`) and all below by empty ones. `a.` replaces only the members of a package,
    while its modules are the installed ones: for packages that import unneeded packages at their start.
    """
    version_of = importlib.metadata.version

    def version(name):
        return VERSION if name in packages else version_of(name)

    importlib.metadata.version = version
    # pydantic does not read the one of Python before 3.12.
    typing.TypedDict = typing_extensions.TypedDict
    sys.meta_path.insert(0, _Finder(packages))
