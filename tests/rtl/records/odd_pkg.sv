// SPDX-License-Identifier: Apache-2.0
// Packed structs of every form that gen_records.py supports, of odd widths.

package odd_pkg;
  localparam int unsigned Width   = 13;
  localparam int          Below   = -3;
  localparam logic [7:0]  Byte    = 8'hff;
  localparam logic        On      = 1'b1;
  localparam int unsigned Entries = $clog2(Width) + 1;

  typedef enum logic [2:0] {
    ColorRed,
    ColorGreen = 3'd3,
    ColorBlue  = 3'd6
  } color_e;

  typedef struct packed {
    logic             valid;
    color_e           color;
    logic [Width-1:0] index;
  } inner_t;

  typedef struct packed {
    logic                  flag;
    logic [0:0]            one;
    logic [Width-1:0]      index;
    color_e                first, second;  // One type, two fields.
    logic [32:0]           middle;
    logic [63:0]           word;
    logic [64:0]           more;
    logic [99:0]           address;
    logic [199:0]          wide;
    inner_t                inner;
    inner_t [2:0]          inners;
    color_e [1:0]          colors;
    logic [3:0][4:0]       fives;
    logic [1:0][2:0][6:0]  sevens;
    logic [1:0][99:0]      wides;
    logic [9:4]            high;
    logic [2:0]            operator;       // A word of C++.
  } odd_t;

  // Without a view in C++.
  typedef union packed {
    logic [7:0]      whole;
    logic [1:0][3:0] halves;
  } union_t;

  typedef struct packed {
    union_t part;
  } without_view_t;
endpackage
