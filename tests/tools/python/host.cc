// A Python interpreter with the module `herdsim` built in.
#include <Python.h>

extern "C" PyObject* PyInit_herdsim();

int main(int argc, char** argv) {
  PyImport_AppendInittab("herdsim", &PyInit_herdsim);
  return Py_BytesMain(argc, argv);
}
