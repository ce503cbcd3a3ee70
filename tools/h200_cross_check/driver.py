"""The few calls of the CUDA driver that running a kernel takes."""

import ctypes
import re
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p

ERROR_LOG_BUFFER, ERROR_LOG_BYTES = 5, 6
LOG_BYTES = 16384


class CudaError(Exception):
    pass


class Driver:
    """The few driver calls that launching takes."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"no libcuda: {error}") from error
        self.call("cuInit", c_uint(0))
        device = c_int()
        self.call("cuDeviceGet", byref(device), c_int(0))
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, c_int(100), device)
        major, minor, version = c_int(), c_int(), c_int()
        self.call("cuDeviceGetAttribute", byref(major), c_int(75), device)
        self.call("cuDeviceGetAttribute", byref(minor), c_int(76), device)
        self.call("cuDriverGetVersion", byref(version))
        self.version = (version.value // 1000, version.value % 1000 // 10)
        self.description = (
            f"{name.value.decode()}, compute capability {major.value}.{minor.value},"
            f" CUDA {self.version[0]}.{self.version[1]}"
        )
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            text = c_char_p()
            self.library.cuGetErrorName(c_int(code), byref(text))
            error = text.value.decode() if text.value else str(code)
            raise CudaError(f"{name}: {error}")

    def load(self, text):
        """A module, or the assembler's complaint as a CudaError."""
        log = ctypes.create_string_buffer(LOG_BYTES)
        options = (c_int * 2)(ERROR_LOG_BUFFER, ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        module = c_void_p()
        image = ctypes.create_string_buffer(text.encode())
        try:
            self.call("cuModuleLoadDataEx", byref(module), image, c_uint(2), options, values)
        except CudaError as error:
            raise CudaError(f"{error}\n{log.value.decode(errors='replace').strip()}") from error
        return module

    def function(self, module, name):
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, name.encode())
        return function

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address

    def upload(self, address, data):
        self.call("cuMemcpyHtoD_v2", address, c_char_p(data), c_size_t(len(data)))

    def download(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, address, c_size_t(size))
        return data.raw

    def fill(self, address, byte, size):
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(byte), c_size_t(size))

    def encode(self, base, tile):
        """A tensor map of the tensor at `base`, aligned as the driver wants it."""
        memory = ctypes.create_string_buffer(128 + 64)
        start = -ctypes.addressof(memory) % 64
        encoded = (ctypes.c_uint8 * 128).from_buffer(memory, start)
        rank = len(tile["dimensions"])
        self.call(
            "cuTensorMapEncodeTiled",
            byref(encoded), c_int(tile["element"]), c_uint(rank), c_void_p(base),
            (ctypes.c_uint64 * rank)(*tile["dimensions"]), (ctypes.c_uint64 * max(rank - 1, 1))(*tile["strides_bytes"]),
            (ctypes.c_uint32 * rank)(*tile["box"]), (ctypes.c_uint32 * rank)(*tile["element_strides"]),
            c_int(0), c_int(tile["swizzle"]), c_int(0), c_int(tile["nan_fill"]),
        )
        return encoded

    def launch(self, function, grid, block, arguments):
        """Arguments are addresses, or tensor maps."""
        values = [ctypes.c_uint64(value) if isinstance(value, int) else value for value in arguments]
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        one = c_uint(1)
        self.call(
            "cuLaunchKernel",
            function,
            c_uint(grid), one, one,
            c_uint(block), one, one,
            c_uint(0), c_void_p(), pointers, c_void_p(),
        )
        self.call("cuCtxSynchronize")


def newest_version(cuda):
    """The newest PTX version that the driver is sure to take (PTX ISA, "Release Notes")."""
    major, minor = cuda
    if major == 12:
        return {0: "8.0", 1: "8.1", 2: "8.2", 3: "8.3", 4: "8.4", 5: "8.5", 6: "8.5", 7: "8.6", 8: "8.7"}.get(minor, "8.8")
    return "9.0" if major >= 13 else "7.8"


def split(text):
    """The module's head, and each entry's text by name."""
    head, *parts = re.split(r"(?=^// .*\n\.visible \.entry )", text, flags=re.MULTILINE)
    return head, {re.search(r"\.entry (\w+)", part)[1]: part for part in parts}


def load_entries(driver, text, names):
    """A function or a complaint per entry. All at once where the assembler takes all of them, else one by one."""
    try:
        module = driver.load(text)
        return {name: driver.function(module, name) for name in names}
    except CudaError:
        pass
    head, entries = split(text)
    functions = {}
    size = 64
    for start in range(0, len(names), size):
        group = names[start:start + size]
        try:
            module = driver.load(head + "".join(entries[name] for name in group))
            functions.update({name: driver.function(module, name) for name in group})
            continue
        except CudaError:
            pass
        for name in group:
            try:
                functions[name] = driver.function(driver.load(head + entries[name]), name)
            except CudaError as error:
                functions[name] = error
    return functions
