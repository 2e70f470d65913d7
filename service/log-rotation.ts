/**
 * Bounds log files: moves a large file's content to `<path>.1`, older content to higher numbers. The file is emptied in
 * place, because processes have it open, for appending.
 */
import {
  appendFileSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  statSync,
} from 'node:fs'
import { copyFile } from 'node:fs/promises'

/** Older files, besides the one that is written. */
export const KEPT_LOGS = 4
/** Size beyond which the processes of `npm start` and of a cluster rotate their logs. */
export const LOG_FILE_BYTES = 16 * 1024 * 1024

const CHUNK_BYTES = 1024 * 1024

const numbered = (path: string, at: number): string => `${path}.${at}`

/** Appends the bytes from `from` on. They are few: those that were written during the copy. */
function appendRest(file: number, from: number, copy: string): void {
  const chunk = Buffer.alloc(CHUNK_BYTES)
  for (let at = from; ; ) {
    const read = readSync(file, chunk, 0, CHUNK_BYTES, at)
    if (read === 0) return
    appendFileSync(copy, chunk.subarray(0, read))
    at += read
  }
}

/** A crash at any point leaves every line in one of the files, or in two of them. */
export async function rotateLog(path: string, kept: number = KEPT_LOGS): Promise<void> {
  const copy = `${path}.copy`
  await copyFile(path, copy)
  for (let at = kept - 1; at >= 1; at--)
    if (existsSync(numbered(path, at))) renameSync(numbered(path, at), numbered(path, at + 1))
  const newest = numbered(path, 1)
  renameSync(copy, newest)
  const file = openSync(path, constants.O_RDWR)
  try {
    // Between the last read and the truncation this process writes nothing, and other processes have microseconds.
    appendRest(file, statSync(newest).size, newest)
    ftruncateSync(file)
  } finally {
    closeSync(file)
  }
}

export const isLarger = (file: number, bytes: number): boolean => fstatSync(file).size > bytes
