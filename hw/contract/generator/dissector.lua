-- SPDX-License-Identifier: Apache-2.0

local uet = Proto("heddle_uet", "Ultra Ethernet Transport (Heddle)")

-- Nothing in a packet says whether it ends with a CRC.
uet.prefs.crc = Pref.bool("Packets end with a CRC-32C", true,
  "End-to-end CRC in the last four bytes of the datagram")

uet.prefs.ip_protocol = Pref.uint("Protocol number of native IP",
  parameters.native_ip_protocol,
  "IP protocol of UET without UDP, as FI_HEDDLE_IP_PROTOCOL")

-- ------------------------------------------------------------------ fields

local fields = {}   -- By header and field name.
local all = {}

local function protofield(header, f)
  local abbr = "heddle_uet." .. header .. "." .. f.name
  local width = f.size
  if f.bits == 1 then
    return ProtoField.bool(abbr, f.name, 8 * width, nil, f.mask, f.doc)
  end
  -- There are no fields of 5 to 7 bytes.
  if width > 4 then
    return ProtoField.uint64(abbr, f.name, base.HEX, nil, f.mask, f.doc)
  end
  local kind = (f.signed and "int" or "uint") .. 8 * width
  return ProtoField[kind](abbr, f.name, base.DEC, enums[f.enum], f.mask, f.doc)
end

for header, list in pairs(headers) do
  fields[header] = {}
  for _, f in ipairs(list) do
    fields[header][f.name] = protofield(header, f)
    all[#all + 1] = fields[header][f.name]
  end
end

local payload_field = ProtoField.bytes("heddle_uet.payload", "Payload")
local crc_field = ProtoField.uint32("heddle_uet.crc", "CRC-32C", base.HEX)
local crc_status_field = ProtoField.string("heddle_uet.crc.status",
  "CRC-32C status")
all[#all + 1] = payload_field
all[#all + 1] = crc_field
all[#all + 1] = crc_status_field
uet.fields = all

local short_expert = ProtoExpert.new("heddle_uet.short",
  "Packet ends before its header does", expert.group.MALFORMED,
  expert.severity.ERROR)
local unknown_expert = ProtoExpert.new("heddle_uet.unknown",
  "Type is not decoded", expert.group.UNDECODED, expert.severity.WARN)
local reserved_expert = ProtoExpert.new("heddle_uet.reserved",
  "Reserved bits are not zero", expert.group.PROTOCOL, expert.severity.NOTE)
local length_expert = ProtoExpert.new("heddle_uet.length",
  "Payload does not have the length in its header", expert.group.PROTOCOL,
  expert.severity.WARN)
local crc_expert = ProtoExpert.new("heddle_uet.crc.bad",
  "CRC-32C does not match", expert.group.CHECKSUM, expert.severity.ERROR)
uet.experts = { short_expert, unknown_expert, reserved_expert, length_expert,
  crc_expert }

-- --------------------------------------------------------------------- CRC

-- CRC-32C, reflected: polynomial 0x1edc6f41, start and final XOR all ones.
local crc_table = {}
for i = 0, 255 do
  local value = i
  for _ = 1, 8 do
    local low = bit32.band(value, 1)
    value = bit32.rshift(value, 1)
    if low == 1 then value = bit32.bxor(value, 0x82f63b78) end
  end
  crc_table[i] = value
end

local function crc32c(...)
  local crc = 0xffffffff
  for _, bytes in ipairs({ ... }) do
    for i = 1, #bytes do
      local at = bit32.band(bit32.bxor(crc, bytes:byte(i)), 0xff)
      crc = bit32.bxor(bit32.rshift(crc, 8), crc_table[at])
    end
  end
  return bit32.bnot(crc)
end

local extract = {
  { Field.new("ip.src"), Field.new("ip.dst") },
  { Field.new("ipv6.src"), Field.new("ipv6.dst") },
}

local function word(value)
  return string.char(math.floor(value / 256) % 256, value % 256)
end

-- Source and destination address of the innermost IP header, as bytes.
local function addresses()
  local best, at = nil, -1
  for _, pair in ipairs(extract) do
    local sources, destinations = { pair[1]() }, { pair[2]() }
    local source = sources[#sources]
    local destination = destinations[#destinations]
    if source and destination and source.offset > at then
      best, at = source.range:raw() .. destination.range:raw(), source.offset
    end
  end
  return best
end

-- Over both addresses, `ahead`, and all before the CRC. Null when not
-- everything was captured.
local function expected_crc(tvb, ahead)
  local pair = addresses()
  if not pair or tvb:len() < tvb:reported_len() then return nil end
  return crc32c(pair, ahead, tvb:raw(0, tvb:len() - parameters.crc_bytes))
end

-- Nothing in a packet says which byte is first: a CRC of either order is good.
local function add_crc(tree, tvb, ahead)
  local range = tvb(tvb:len() - parameters.crc_bytes, parameters.crc_bytes)
  local expected = expected_crc(tvb, ahead)
  local reversed = expected == range:le_uint() and expected ~= range:uint()
  local item = reversed and tree:add_le(crc_field, range)
    or tree:add(crc_field, range)
  local status = "not checked"
  if expected then
    status = (reversed or expected == range:uint()) and "good" or "bad"
  end
  if reversed then item:append_text(" [least significant byte first]") end
  tree:add(crc_status_field, range, status):set_generated()
  if status == "bad" then
    item:append_text(string.format(" [should be 0x%08x]", expected))
    item:add_proto_expert_info(crc_expert)
  end
end

-- ----------------------------------------------------------------- headers

-- Fields of more than 32 bits choose nothing and are not returned.
local function number(tvb, offset, f)
  if f.bits > 32 then return nil end
  return tvb(offset + f.byte, f.size):bitfield(f.bit - 8 * f.byte, f.bits)
end

-- Adds `header` at `offset` to `tree`; its values by name, and the offset
-- behind it. Null when the packet is shorter.
local function add_header(tree, tvb, offset, header)
  local list = headers[header]
  if tvb:len() < offset + list.bytes then
    tree:add_proto_expert_info(short_expert,
      "Packet ends before its header " .. header .. " does")
    return nil
  end
  local branch = tree:add(uet, tvb(offset, list.bytes), header .. ": "
    .. list.doc)
  local values = {}
  for _, f in ipairs(list) do
    if not f.selector or values[f.selector] == f.selected then
      values[f.name] = number(tvb, offset, f)
      local item = branch:add(fields[header][f.name],
        tvb(offset + f.byte, f.size))
      if f.reserved and values[f.name] ~= 0 then
        item:add_proto_expert_info(reserved_expert)
      end
    end
  end
  return values, offset + list.bytes
end

-- Headers of a PDS type, in order.
local pds_headers = {
  rud_req = { "pds_request" },
  rod_req = { "pds_request" },
  rud_cc_req = { "pds_request", "pds_cc_state" },
  rod_cc_req = { "pds_request", "pds_cc_state" },
  uud_req = { "pds_uud" },
  ack = { "pds_ack" },
  ack_cc = { "pds_ack", "pds_ack_cc" },
  nack = { "pds_nack" },
  cp = { "pds_cp" },
}

local ses_headers = {
  request_small = "ses_small",
  request_medium = "ses_medium",
  request_std = "ses_std",
  response = "ses_response",
  response_data = "ses_response_data",
  response_data_small = "ses_response_data_small",
}

-- Byte of a header where one of its fields starts.
local function place(header, field)
  for _, f in ipairs(headers[header]) do
    if f.name == field then return f.byte end
  end
end

-- Where the tokens of a standard request stand.
local token_place = {
  deferrable_send = place("ses_std", "buffer_offset"),
  deferrable_tsend = place("ses_std", "buffer_offset"),
  deferrable_rtr = place("ses_std", "match_bits"),
}

local rendezvous = { rendezvous_send = true, rendezvous_tsend = true }

local atomics = {
  atomic = true, fetching_atomic = true, tsend_atomic = true,
  tsend_fetch_atomic = true,
}

-- Adds the headers from `offset` on; all their values by name, and the offset
-- behind them.
local function add_pds(tree, tvb, offset, type_name)
  local values = {}
  local function add(at, header)
    local own, behind = add_header(tree, tvb, at, header)
    if not own then return nil end
    for name, value in pairs(own) do values[name] = value end
    return behind
  end
  for _, header in ipairs(pds_headers[type_name]) do
    offset = add(offset, header)
    if not offset then return nil end
  end
  if enums.cp_type[values.cp_type] == "negotiation" then
    offset = add(offset - headers.pds_cp.bytes + place("pds_cp", "payload"),
      "pds_negotiation")
    if not offset then return nil end
  end
  return values, offset
end

-- Adds what the opcode of the request before `offset` says of its fields, and
-- the headers behind it; the offset behind those, and how many of their bytes
-- count as payload.
local function add_extensions(tree, tvb, offset, ses_name, ses)
  local opcode = enums.ses_opcode[ses.opcode]
  local tokens = ses_name == "ses_std" and token_place[opcode]
  if tokens then
    add_header(tree, tvb, offset - headers.ses_std.bytes + tokens, "ses_tokens")
  end
  if ses_name == "ses_std" and rendezvous[opcode] then
    local extension
    extension, offset = add_header(tree, tvb, offset, "ses_rendezvous")
    return extension and offset, 0
  end
  if not atomics[opcode] then return offset, 0 end
  local amo
  amo, offset = add_header(tree, tvb, offset, "ses_atomic")
  local operation = amo and enums.amo_opcode[amo.amo_opcode]
  if not operation or not operation:find("^cswap") then
    return amo and offset, 0
  end
  amo, offset = add_header(tree, tvb, offset, "ses_cswap")
  return amo and offset, headers.ses_cswap.bytes
end

local function pds_info(name, values)
  local text = name
  if name == "cp" then
    text = text .. " " .. (enums.cp_type[values.cp_type] or values.cp_type)
  elseif name == "nack" then
    text = text .. " "
      .. (enums.nack_code[values.nack_code] or values.nack_code)
  end
  if values.syn == 1 then text = text .. " SYN" end
  if values.retx == 1 then text = text .. " retx" end
  for _, key in ipairs({ "psn", "cack_psn", "nack_psn", "spdcid", "dpdcid" }) do
    if values[key] then text = text .. " " .. key .. "=" .. values[key] end
  end
  return text
end

-- What `payload_length` says of this packet: a READ asks for so many bytes.
local function bytes_behind(name, values)
  local is_read = name == "ses_std" and enums.ses_opcode[values.opcode] == "read"
  return is_read and 0 or values.payload_length
end

local function ses_info(name, values)
  local names = name:find("^ses_response") and enums.ses_response
    or enums.ses_opcode
  local text = ", " .. (names[values.opcode] or values.opcode)
  if values.return_code then
    text = text .. " "
      .. (enums.return_code[values.return_code] or values.return_code)
  end
  for _, key in ipairs({ "message_id", "request_length" }) do
    if values[key] then text = text .. " " .. key .. "=" .. values[key] end
  end
  return text
end

-- `ahead` is what the CRC covers between the addresses and `tvb`, whose packet
-- starts at `offset`.
local function dissect(tvb, pinfo, root, ahead, offset)
  pinfo.cols.protocol = "UET"
  local tree = root:add(uet, tvb())
  local trailer = uet.prefs.crc and parameters.crc_bytes or 0
  if tvb:len() < offset + headers.pds_prologue.bytes + trailer then
    tree:add_proto_expert_info(short_expert)
    return tvb:len()
  end
  if trailer > 0 then add_crc(tree, tvb, ahead) end
  local packet = tvb(0, tvb:len() - trailer):tvb()
  if offset > 0 then add_header(tree, packet, 0, "entropy") end

  local type_number = packet(offset, 2):bitfield(0, 5)
  local type_name = enums.pds_type[type_number]
  if not pds_headers[type_name] then
    pinfo.cols.info = "PDS type " .. (type_name or type_number)
    tree:add_proto_expert_info(unknown_expert)
    tree:add(payload_field, packet(offset))
    return tvb:len()
  end
  local values
  values, offset = add_pds(tree, packet, offset, type_name)
  if not values then return tvb:len() end
  local info = pds_info(type_name, values)

  local next_name = values.next_hdr and enums.next_hdr[values.next_hdr]
  local ses_name = ses_headers[next_name]
  local ses, operands = nil, 0
  if ses_name then
    ses, offset = add_header(tree, packet, offset, ses_name)
    if not ses then return tvb:len() end
    info = info .. ses_info(ses_name, ses)
    if ses_name:find("^ses_response") == nil then
      offset, operands = add_extensions(tree, packet, offset, ses_name, ses)
      if not offset then return tvb:len() end
    end
  elseif values.next_hdr and next_name ~= "none" then
    tree:add_proto_expert_info(unknown_expert, "next_hdr "
      .. values.next_hdr .. " is not decoded")
  end

  local rest = packet:len() - offset
  if rest > 0 then
    tree:add(payload_field, packet(offset, rest))
    info = info .. " payload=" .. rest
  end
  if ses and ses.payload_length
    and bytes_behind(ses_name, ses) ~= rest + operands then
    tree:add_proto_expert_info(length_expert)
  end
  pinfo.cols.info = info
  tree:append_text(": " .. info)
  return tvb:len()
end

function uet.dissector(tvb, pinfo, root)
  local udp = word(pinfo.src_port) .. word(pinfo.dst_port)
    .. word(tvb:len() + 8) .. word(0)
  return dissect(tvb, pinfo, root, udp, 0)
end

local native = Proto("heddle_uet_native",
  "Ultra Ethernet Transport over IP (Heddle)")

function native.dissector(tvb, pinfo, root)
  return dissect(tvb, pinfo, root, "", headers.entropy.bytes)
end

DissectorTable.get("udp.port"):add(parameters.uet_udp_port, uet)

local protocols = DissectorTable.get("ip.proto")
local protocol = parameters.native_ip_protocol
protocols:add(protocol, native)

function uet.prefs_changed()
  if uet.prefs.ip_protocol == protocol then return end
  protocols:remove(protocol, native)
  protocol = uet.prefs.ip_protocol
  protocols:add(protocol, native)
end
