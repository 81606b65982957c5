//! Objects of Python, and their methods by name.

use pyo3::prelude::*;

use super::failure::contract;

/// The object that `make` makes, and its methods by name. A method that is missing and not optional is an error.
pub(super) fn made<'py, const N: usize>(
    make: &Bound<'py, PyAny>,
    needed: [&str; N],
) -> PyResult<(Bound<'py, PyAny>, [Py<PyAny>; N])> {
    let object = make.call0()?;
    let mut methods = Vec::new();
    for name in needed {
        let method = object.getattr(name).ok().filter(PyAnyMethods::is_callable);
        let method = method.ok_or_else(|| {
            let class = class_of(&object);
            contract(object.py(), &format!("{class} has no method {name}: it needs {}", needed.join(", ")))
        })?;
        methods.push(method.unbind());
    }
    let methods = methods.try_into().map_err(|_| contract(object.py(), "methods are missing"))?;
    Ok((object, methods))
}

/// A method that may be missing.
pub(super) fn optional(object: &Bound<'_, PyAny>, name: &str) -> Option<Py<PyAny>> {
    object.getattr(name).ok().filter(PyAnyMethods::is_callable).map(Bound::unbind)
}

/// The name of an object's class.
pub(super) fn class_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}
