-- What commands ask for. Many of a batch ask for the same, so each shape is sent once; a command names its shape.
local shapes = cmsgpack.unpack(argv[4])
