/** The text of a body whose sender is not trusted with its size. */

/** Null if it is larger than the bound; the rest of it is not read. */
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
