/**
 * Writes log lines without blocking on a full disk or an unread pipe. Lines wait in a bounded buffer; lines beyond it
 * are dropped, counted and reported once writing succeeds.
 */
import { constants, fstatSync, openSync, readlinkSync, statSync, write, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { isLarger, rotateLog } from './log-rotation.ts'

/** The part of `fs` that a test replaces. */
export interface LogFile {
  write(bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void
  writeSync(bytes: Buffer): number
  /** Moves the content of a file that is too large; null if it is not. */
  rotate?(): Promise<void> | null
}

export interface LogWriterOptions {
  readonly file: LogFile
  /** Maximum buffered bytes. */
  readonly maxBytes: number
  /** Formats the line that reports dropped lines. */
  readonly report: (dropped: number) => string
}

export interface LogWriter {
  /** The form that the logger calls. */
  write(line: string): void
  /** Resolves once everything is written, or after `mostMs`. */
  flush(mostMs: number): Promise<void>
  /** Writes as much as possible synchronously, at the end of the process. */
  flushSync(): void
  /** Number of lines dropped since the start. */
  readonly dropped: number
}

/** Bytes per write. */
const CHUNK_BYTES = 64 * 1024
/** Pause after a failed write: EAGAIN of a full pipe, ENOSPC of a full disk, EPIPE of an ended reader. */
const RETRY_MS = 100
/** Longest wait for a write in flight at the end of the process. */
const IN_FLIGHT_MS = 50
/** Reserved bytes for the report of dropped lines. */
const REPORT_BYTES = 512

export function createLogWriter({ file, maxBytes, report }: LogWriterOptions): LogWriter {
  const lines: Buffer[] = []
  let waitingBytes = 0
  let dropped = 0
  let reported = 0
  /** Chunk that is being written, or was partly written. */
  let chunk: Buffer | null = null
  let isWriting = false
  let timer: NodeJS.Timeout | undefined
  const idle = new Set<() => void>()

  const push = (line: Buffer): void => {
    lines.push(line)
    waitingBytes += line.length
  }

  /** Next bytes to write; null if the buffer is empty. */
  function next(): Buffer | null {
    if (chunk !== null) return chunk
    if (dropped > reported && waitingBytes + REPORT_BYTES <= maxBytes) {
      push(Buffer.from(report(dropped - reported)))
      reported = dropped
    }
    const taken: Buffer[] = []
    let bytes = 0
    while (lines.length > 0 && bytes < CHUNK_BYTES) {
      const line = lines.shift() as Buffer
      taken.push(line)
      bytes += line.length
    }
    waitingBytes -= bytes
    chunk = taken.length === 0 ? null : Buffer.concat(taken)
    return chunk
  }

  function advance(written: number): void {
    chunk = chunk === null || written >= chunk.length ? null : chunk.subarray(written)
  }

  function work(): void {
    if (isWriting || timer !== undefined) return
    const bytes = next()
    if (bytes === null) {
      for (const resolve of idle) resolve()
      idle.clear()
      return
    }
    isWriting = true
    file.write(bytes, (error, written) => {
      isWriting = false
      if (error === null) advance(written)
      else timer = setTimeout(retry, RETRY_MS).unref()
      // Between two lines: none is divided between two files.
      const rotation = chunk === null ? file.rotate?.() : null
      if (rotation) pauseFor(rotation)
      else work()
    })
  }

  /** A rotation that fails, for example on a full disk, is repeated after the next write. */
  function pauseFor(rotation: Promise<void>): void {
    isWriting = true
    const resume = (): void => {
      isWriting = false
      work()
    }
    rotation.then(resume, resume)
  }

  function retry(): void {
    timer = undefined
    work()
  }

  return {
    write(line) {
      const bytes = Buffer.from(line)
      if (waitingBytes + (chunk?.length ?? 0) + bytes.length > maxBytes) dropped++
      else push(bytes)
      work()
    },
    async flush(mostMs) {
      if (!isWriting && chunk === null && lines.length === 0) return
      let late: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        idle.add(resolve)
        late = setTimeout(resolve, mostMs)
        work()
      })
      clearTimeout(late)
    },
    flushSync() {
      // The write's callback can no longer run; a write still in flight by then never ends.
      if (isWriting) {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, IN_FLIGHT_MS)
        advance(Number.POSITIVE_INFINITY)
        isWriting = false
      }
      try {
        for (let bytes = next(); bytes !== null; bytes = next()) advance(file.writeSync(bytes))
      } catch {
        // The reader has stopped: the remaining lines are lost with the process.
      }
    },
    get dropped() {
      return dropped
    },
  }
}

const STDOUT = 1

/** The path of standard output if it is a file that has a name; null otherwise, and on systems that do not state it. */
function pathOfStdout(): string | null {
  const found = fstatSync(STDOUT)
  if (!found.isFile()) return null
  try {
    const path = readlinkSync(`/proc/self/fd/${STDOUT}`)
    return statSync(path).ino === found.ino ? path : null
  } catch {
    return null
  }
}

/**
 * Opens standard output without blocking: a blocked write would occupy a thread that the process end waits for.
 * `mostBytes`: size from which a file is rotated; 0: never.
 */
export function openStdout(mostBytes = 0): LogFile {
  if (fstatSync(STDOUT).isSocket()) return socketFile(STDOUT)
  // A pipe or file is opened again, so that other processes do not share the flag. Child processes get a socket from
  // Node.js.
  let fd = STDOUT
  try {
    fd = openSync(`/proc/self/fd/${STDOUT}`, constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK)
  } catch {
    // The file stays in use unchanged.
  }
  const path = mostBytes === 0 ? null : pathOfStdout()
  return {
    write: (bytes, done) => write(fd, bytes, (error, written) => done(error, written)),
    writeSync: (bytes) => writeSync(fd, bytes),
    rotate: () => (path !== null && isLarger(fd, mostBytes) ? rotateLog(path) : null),
  }
}

function socketFile(fd: number): LogFile {
  const socket = new Socket({ fd, readable: false, writable: true })
  // Each write has its error too.
  socket.on('error', () => {}).unref()
  return {
    write: (bytes, done) =>
      void socket.write(bytes, (error) => done(error ?? null, error ? 0 : bytes.length)),
    writeSync: (bytes) => writeSync(fd, bytes),
  }
}
