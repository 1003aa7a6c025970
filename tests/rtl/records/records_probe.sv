// SPDX-License-Identifier: Apache-2.0
// The fields of a record as SystemVerilog sees them.

module records_probe
  import odd_pkg::*;
(
  input  odd_t         record_i,
  input  logic [1:0]   element_i,   // Selects an element of the arrays.
  output logic [31:0]  bits_o,
  output logic         flag_o,
  output logic         one_o,
  output logic [12:0]  index_o,
  output logic [2:0]   first_o,
  output logic [2:0]   second_o,
  output logic [32:0]  middle_o,
  output logic [63:0]  word_o,
  output logic [64:0]  more_o,
  output logic [99:0]  address_o,
  output logic [199:0] wide_o,
  output logic         inner_valid_o,
  output logic [2:0]   inner_color_o,
  output logic [12:0]  inner_index_o,
  output inner_t       inners_o,
  output logic [2:0]   colors_o,
  output logic [4:0]   fives_o,
  output logic [6:0]   sevens_o,    // sevens[1][element_i]
  output logic [99:0]  wides_o,
  output logic [5:0]   high_o,
  output logic [2:0]   operator_o,
  output inner_t [2:0] array_o
);
  assign bits_o        = $bits(odd_t);
  assign flag_o        = record_i.flag;
  assign one_o         = record_i.one;
  assign index_o       = record_i.index;
  assign first_o       = record_i.first;
  assign second_o      = record_i.second;
  assign middle_o      = record_i.middle;
  assign word_o        = record_i.word;
  assign more_o        = record_i.more;
  assign address_o     = record_i.address;
  assign wide_o        = record_i.wide;
  assign inner_valid_o = record_i.inner.valid;
  assign inner_color_o = record_i.inner.color;
  assign inner_index_o = record_i.inner.index;
  assign inners_o      = element_i < 2'd3 ? record_i.inners[element_i] : '0;
  assign colors_o      = record_i.colors[element_i[0]];
  assign fives_o       = record_i.fives[element_i];
  assign sevens_o      = element_i < 2'd3 ? record_i.sevens[1][element_i] : '0;
  assign wides_o       = record_i.wides[element_i[0]];
  assign high_o        = record_i.high;
  assign operator_o    = record_i.operator;
  assign array_o       = record_i.inners;
endmodule
