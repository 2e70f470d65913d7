/**
 * Encodes server text messages (RFC 6455, 5.2) whole and without mask or extension, so that all sockets get the same
 * bytes and each takes a moment's messages in one write.
 */
import type { Frame } from './ports.ts'

const TEXT_AND_FINAL = 0x81
const LENGTH_16 = 126
const LENGTH_64 = 127

function headerOf({ length }: Buffer): Buffer {
  if (length < LENGTH_16) return Buffer.from([TEXT_AND_FINAL, length])
  if (length < 2 ** 16) return Buffer.from([TEXT_AND_FINAL, LENGTH_16, length >> 8, length & 0xff])
  const header = Buffer.alloc(10)
  header.set([TEXT_AND_FINAL, LENGTH_64])
  header.writeBigUInt64BE(BigInt(length), 2)
  return header
}

/** Readers of the same topics share a list of frames (`Delivery`). */
const made = new WeakMap<readonly Frame[], Buffer>()

/** The frames in one buffer, which must not be changed. */
export function wireOf(frames: readonly Frame[]): Buffer {
  const known = made.get(frames)
  if (known !== undefined) return known
  const bytes = Buffer.concat(frames.flatMap(({ text }) => [headerOf(text), text]))
  made.set(frames, bytes)
  return bytes
}
