import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { startChild } from '../../stack/child.ts'
import { waitFor } from '../support/patience.ts'

describe('stack/child', () => {
  it('when the starting process is killed, the program ends and its folder is deleted', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'clearbatch-child-'))
    const starter = spawn(process.execPath, ['--input-type=module', '-e', killedStarter(dir)])
    expect(await once(starter, 'exit')).to.deep.equal([null, 'SIGKILL'])

    while (existsSync(dir)) await sleep(10)
  })

  it('when a program fails to start, the error contains its output', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'clearbatch-child-'))
    const program = { command: 'sh', args: ['-c', 'echo no such luck; exit 3'], logFile: join(dir, 'log') }
    const error = await startChild({ ...program, ready: async () => false }).catch(
      (failure: Error) => failure,
    )
    await rm(dir, { recursive: true })
    expect(error).to.be.an('error').with.property('message').that.contains('no such luck')
  })

  it('when a program writes without end, its output is rotated', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'clearbatch-child-'))
    const logFile = join(dir, 'log')
    const args = ['-c', 'while :; do echo a line of its output; sleep 0.01; done']
    const ready = async () => true
    const child = await startChild({
      command: 'sh',
      args,
      stopSignal: 'TERM',
      logFile,
      logFileBytes: 100,
      ready,
    })
    await waitFor(
      async () => existsSync(`${logFile}.2`),
      (isRotated) => isRotated,
    )
    expect(statSync(`${logFile}.1`).size).to.be.above(100)
    await child.stop()
    await rm(dir, { recursive: true })
  })
})

const killedStarter = (dir: string): string => `
  import { startChild } from '${new URL('../../stack/child.ts', import.meta.url)}'
  const options = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)'], logFile: '/dev/null', removeAfter: ${JSON.stringify(dir)} }
  await startChild({ ...options, ready: async () => true })
  process.kill(process.pid, 'SIGKILL')
`
