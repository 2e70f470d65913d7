/** Reads the text of a body from an untrusted sender. */

/** The body's text; null if it exceeds the bound. The rest is then not read. */
export async function boundedText(
  body: AsyncIterable<Uint8Array> | null,
  mostBytes: number,
): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > mostBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
