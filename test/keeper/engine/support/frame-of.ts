/** A message as it is sent. */
export function frameOf(message: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(message))
  const header = Buffer.alloc(4)
  header.writeUInt32BE(text.length)
  return Buffer.concat([header, text])
}
