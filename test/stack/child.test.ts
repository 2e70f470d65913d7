import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { startChild } from '../../stack/child.ts'

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
})

const killedStarter = (dir: string): string => `
  import { startChild } from '${new URL('../../stack/child.ts', import.meta.url)}'
  const options = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)'], logFile: '/dev/null', removeAfter: ${JSON.stringify(dir)} }
  await startChild({ ...options, ready: async () => true })
  process.kill(process.pid, 'SIGKILL')
`
