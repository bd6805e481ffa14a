#pragma once
// elementary -- log, exp, sine and cosine in double, from + - * / alone.
//
// A C library may change its last bits with its version and the processor it finds; these cannot,
// so what is computed from them (rotation tables, losses) is the same on every machine. Good to
// about 1e-15 relative (sine and cosine: absolute), far finer than the floats that are made of
// them. Pure; any thread.

double elementary_log(double x); // x finite and above 0, not denormal; anything else gives NaN
double elementary_exp(double x); // x within -700..700; beyond that 0 or infinity, NaN for NaN
// |x| up to 1e6; beyond that, and for NaN, both NaN.
void elementary_sine_cosine(double x, double *ret_sine, double *ret_cosine);
