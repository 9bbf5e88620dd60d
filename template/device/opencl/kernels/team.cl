// A team of TEAM work items that make one result together. ACC, double where there is one, is what they add up in.
#ifdef HAS_FLOAT64
typedef double ACC;
#else
typedef float ACC;
#endif

// Each member's share of the numbers below `size`.
#define FOR_SHARE(i, size) for (long i = get_local_id(0); i < (size); i += TEAM)

ACC greater_of(ACC a, ACC b) { return isnan(a) || a > b ? a : b; }
ACC sum_of(ACC a, ACC b) { return a + b; }

// What the members' shares come to; every one gets it. `shares` has room for one of each.
#define DEFINE_TEAM_FUNCTION(name, merge)                                    \
  ACC name(ACC share, __local ACC* shares) {                                 \
    const int member = get_local_id(0);                                      \
    shares[member] = share;                                                  \
    for (int half_team = TEAM / 2; half_team > 0; half_team /= 2) {          \
      barrier(CLK_LOCAL_MEM_FENCE);                                          \
      if (member < half_team) {                                              \
        shares[member] = merge(shares[member], shares[member + half_team]);  \
      }                                                                      \
    }                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                            \
    const ACC result = shares[0];                                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                            \
    return result;                                                           \
  }
DEFINE_TEAM_FUNCTION(sum_of_team, sum_of)
DEFINE_TEAM_FUNCTION(greatest_of_team, greater_of)
