//! ECA server library.
