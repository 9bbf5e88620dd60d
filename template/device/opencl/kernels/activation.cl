// What activations compute of a variable x of type T, of which ACTIVATION names one.
#define ACTIVATE(x) PASTE(activate_, ACTIVATION)(x)
#define activate_none(x) (x)
#define activate_relu(x) ((x) < 0 ? (T)0 : (x))
#define activate_gelu(x) ((x) * (1 + erf((x) * (T)0.70710678118654752440)) / 2)
#define activate_gelu_tanh(x) \
  ((x) * (1 + tanh((T)0.79788456080286535588 * ((x) + (T)0.044715 * (x) * (x) * (x)))) / 2)
#define activate_silu(x) ((x) / (1 + exp(-(x))))
