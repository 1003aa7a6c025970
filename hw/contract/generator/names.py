# SPDX-License-Identifier: Apache-2.0
"""Identifiers of the generated views."""

import re

# Reserved by IEEE 1800-2017 and usable as a field name elsewhere. A field of
# such a name has a trailing underscore in SystemVerilog: `type_`.
SV_KEYWORDS = frozenset("""
accept_on alias always always_comb always_ff always_latch and assert assign
assume automatic before begin bind bins binsof bit break buf bufif0 bufif1 byte
case casex casez cell chandle checker class clocking cmos config const
constraint context continue cover covergroup coverpoint cross deassign default
defparam design disable dist do edge else end endcase endchecker endclass
endclocking endconfig endfunction endgenerate endgroup endinterface endmodule
endpackage endprimitive endprogram endproperty endsequence endspecify endtable
endtask enum event eventually expect export extends extern final first_match
for force foreach forever fork forkjoin function generate genvar global highz0
highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir
include initial inout input inside instance int integer interconnect interface
intersect join join_any join_none large let liblist library local localparam
logic longint macromodule matches medium modport module nand negedge nettype
new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package
packed parameter pmos posedge primitive priority program property protected
pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand
randc randcase randsequence rcmos real realtime ref reg reject_on release
repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always
s_eventually s_nexttime s_until s_until_with scalared sequence shortint
shortreal showcancelled signed small soft solve specify specparam static string
strong strong0 strong1 struct super supply0 supply1 sync_accept_on
sync_reject_on table tagged task this throughout time timeprecision timeunit
tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef union
unique unique0 unsigned until until_with untyped use uwire var vectored virtual
void wait wait_order wand weak weak0 weak1 while wildcard wire with within wor
xnor xor
""".split())

# Legal names that Verilator reports as clashes in its C++.
VERILATOR_WORDS = frozenset({"list", "map", "set", "vector"})

# A field cannot have these names: the C++ view uses field names unchanged.
CC_KEYWORDS = frozenset("""
alignas alignof and and_eq asm auto bitand bitor bool break case catch char
class compl concept const consteval constexpr constinit continue co_await
co_return co_yield decltype default delete do double dynamic_cast else enum
explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected
public register reinterpret_cast requires return short signed sizeof static
static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename union unsigned using virtual void volatile wchar_t
while xor xor_eq
""".split())


def legal(name):
    """Whether `name` may name a field or entry of the contract."""
    return re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) is not None


def legal_field(name):
    return legal(name) and name not in CC_KEYWORDS


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def register(entry):
    """UpperCamel name of a register: its space, then its own name."""
    name = entry["name"].removeprefix(f"{entry['space']}_")
    return camel(entry["space"]) + camel(name)


def sv_field(name):
    return f"{name}_" if name in SV_KEYWORDS | VERILATOR_WORDS else name
