/** Reads a proof and an own order from a URL or a file. */
import { readFile } from 'node:fs/promises'
import type { OwnFields, VerifyOptions } from '../client/proof/verify-batch.ts'

const TIMEOUT_MS = 30_000
const HASH = /^0x[0-9a-f]{64}$/

/** Throws if the file or the URL cannot be read, or contains no JSON. */
export async function readProof(source: string): Promise<Pick<VerifyOptions, 'proof' | 'readAt'>> {
  const isUrl = /^https?:\/\//.test(source)
  const readAt = isUrl ? { readAt: Date.now() } : {}
  const text = isUrl ? await download(source) : await readFile(source, 'utf8')
  try {
    return { proof: JSON.parse(text), ...readAt }
  } catch {
    throw new Error(`${source} is no JSON: expected the proof of a batch`)
  }
}

async function download(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 500)}`)
  return text
}

/** `order` is a hash, or a file with the answer to a placement or a read. */
export async function readOwnOrder(order: string): Promise<string | OwnFields> {
  if (HASH.test(order)) return order
  const content = JSON.parse(await readFile(order, 'utf8')) as OwnFields & { readonly order?: OwnFields }
  return content.order ?? content
}
