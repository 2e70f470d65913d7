/** What a command takes from its surroundings: folders of the platform, colours, and a disk that is full. */
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { configFolder, stateFolder } from '../../cli/config.ts'
import { Terminal } from '../../cli/terminal.ts'
import { skipBecause } from '../e2e/support/guide.ts'
import { TestScreen } from './support/test-screen.ts'

describe('cli/config', () => {
  it('given a platform, it returns the folders of that platform for settings and for state', () => {
    const home = { HOME: '/people/ann' }
    expect(configFolder(home, 'linux')).to.equal(join('/people/ann', '.config', 'clearbatch'))
    expect(stateFolder(home, 'darwin')).to.equal(join('/people/ann', '.local', 'state', 'clearbatch'))
    const xdg = { ...home, XDG_CONFIG_HOME: '/etc/ann', XDG_STATE_HOME: '/var/ann' }
    expect(configFolder(xdg, 'linux')).to.equal(join('/etc/ann', 'clearbatch'))
    expect(stateFolder(xdg, 'linux')).to.equal(join('/var/ann', 'clearbatch'))
    const windows = { APPDATA: 'roaming', LOCALAPPDATA: 'local' }
    expect(configFolder(windows, 'win32')).to.equal(join('roaming', 'clearbatch'))
    expect(stateFolder(windows, 'win32')).to.equal(join('local', 'clearbatch'))
    expect(configFolder({ ...xdg, CLEARBATCH_CONFIG_DIR: '/own' }, 'win32')).to.equal('/own')
  })
})

describe('cli/terminal', () => {
  const streams = (stdout: TestScreen | PassThrough) => ({ stdin: Readable.from([]), stdout, stderr: stdout })
  const colourOf = (stdout: TestScreen | PassThrough, env = {}) =>
    new Terminal(streams(stdout), env).colour('x', 'red') !== 'x'

  it('when standard output is a terminal, texts have colours, and in a pipe or with NO_COLOR they have none', () => {
    expect(colourOf(new TestScreen(40))).to.equal(true)
    expect(colourOf(new PassThrough())).to.equal(false)
    expect(colourOf(new TestScreen(40), { NO_COLOR: '1' })).to.equal(false)
    expect(colourOf(new TestScreen(40), { TERM: 'dumb' })).to.equal(false)
  })

  it('when the disk is full, the command says so in one line and exits with 1', function () {
    if (!existsSync('/dev/full')) return skipBecause(this, 'this system has no /dev/full')
    const full = openSync('/dev/full', 'w')
    const { status, stderr } = spawnSync(process.execPath, ['cli/main.ts', 'completion', 'bash'], {
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    })
    closeSync(full)
    expect([status, stderr]).to.deep.equal([
      1,
      'the output cannot be written: the disk is full; free space and run the command again\n',
    ])
  })

  it('when an error is thrown outside of the command, it is one line without a stack trace, and the exit code is 3', () => {
    const preload = 'data:text/javascript,setTimeout(()=>{throw new Error("odd")},1000)'
    const args = ['market', 'list', '--url', 'http://127.0.0.1:4', '--timeout', '30']
    const { status, stderr } = spawnSync(process.execPath, ['--import', preload, 'cli/main.ts', ...args], {
      encoding: 'utf8',
    })
    expect([status, stderr]).to.deep.equal([
      3,
      'unexpected failure, whose outcome is unknown: odd (--debug shows where)\n',
    ])
  })
})
