//! Reads by typed key, for everything that can look up the value of a row.

/// Adds `int`, `long`, `bool` and so on to a type that has `value(&'static Row)`.
///
/// A value was read by its row's type, so the other variants cannot be met.
macro_rules! typed_access {
    ($holder:ty) => {
        impl $holder {
            /// The value of a key of type int.
            pub fn int(&self, key: $crate::config::Key<$crate::config::row::Int>) -> i32 {
                self.number(key.row).map_or(0, |value| value as i32)
            }

            /// The value of a key of type short.
            pub fn short(&self, key: $crate::config::Key<$crate::config::row::Short>) -> i16 {
                self.number(key.row).map_or(0, |value| value as i16)
            }

            /// The value of a key of type long.
            pub fn long(&self, key: $crate::config::Key<$crate::config::row::Long>) -> i64 {
                self.number(key.row).unwrap_or(0)
            }

            /// The value of a nullable key of type int.
            pub fn opt_int(
                &self,
                key: $crate::config::Key<$crate::config::row::OptInt>,
            ) -> Option<i32> {
                self.number(key.row).map(|value| value as i32)
            }

            /// The value of a nullable key of type long.
            pub fn opt_long(
                &self,
                key: $crate::config::Key<$crate::config::row::OptLong>,
            ) -> Option<i64> {
                self.number(key.row)
            }

            /// The value of a key of type boolean.
            pub fn bool(&self, key: $crate::config::Key<$crate::config::row::Bool>) -> bool {
                matches!(self.value(key.row), Some($crate::config::Value::Bool(true)))
            }

            /// The value of a key of type double.
            pub fn double(&self, key: $crate::config::Key<$crate::config::row::Double>) -> f64 {
                match self.value(key.row) {
                    Some($crate::config::Value::Double(value)) => *value,
                    other => unreachable!("{} is a double, not {other:?}", key.row.name),
                }
            }

            /// The value of a string or class name.
            pub fn string<T: $crate::config::row::Textual>(
                &self,
                key: $crate::config::Key<T>,
            ) -> &str {
                self.text(key.row).unwrap_or("")
            }

            /// The value of a nullable string, class name or password.
            pub fn opt_string<T: $crate::config::row::OptTextual>(
                &self,
                key: $crate::config::Key<T>,
            ) -> Option<&str> {
                self.text(key.row)
            }

            /// The elements of a list.
            pub fn list(&self, key: $crate::config::Key<$crate::config::row::List>) -> Vec<&str> {
                $crate::config::elements(self.text(key.row).unwrap_or("")).collect()
            }

            /// The elements of a nullable list.
            pub fn opt_list(
                &self,
                key: $crate::config::Key<$crate::config::row::OptList>,
            ) -> Option<Vec<&str>> {
                self.text(key.row).map(|text| $crate::config::elements(text).collect())
            }

            fn number(&self, row: &'static $crate::config::Row) -> Option<i64> {
                match self.value(row) {
                    Some($crate::config::Value::Int(value)) => Some(*value),
                    None => None,
                    other => unreachable!("{} is a whole number, not {other:?}", row.name),
                }
            }

            fn text(&self, row: &'static $crate::config::Row) -> Option<&str> {
                match self.value(row) {
                    Some($crate::config::Value::Text(text)) => Some(text),
                    None => None,
                    other => unreachable!("{} is a text, not {other:?}", row.name),
                }
            }
        }
    };
}
pub(super) use typed_access;
