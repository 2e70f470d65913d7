/** Completions in real shells; a shell that is not installed is skipped. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { complete } from '../../cli/complete.ts'
import { COMMANDS } from '../../cli/table.ts'
import { skipBecause } from '../e2e/support/guide.ts'

describe('clearbatch completion', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-completion-'))
  before(() => {
    const file = join(folder, 'clearbatch')
    writeFileSync(file, `#!/bin/sh\nexec "${process.execPath}" "${resolve('cli/main.ts')}" "$@"\n`)
    chmodSync(file, 0o755)
  })
  after(() => rmSync(folder, { recursive: true }))

  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, HOME: folder }
  const isMissing = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).error !== undefined

  it('when words are typed, the table decides which can follow', () => {
    expect(complete(COMMANDS, ['or'])).to.deep.equal(['order'])
    expect(complete(COMMANDS, ['order', 'p'])).to.deep.equal(['place'])
    expect(complete(COMMANDS, ['auth', 'keys', 'r'])).to.deep.equal(['rotate', 'register', 'revoke'])
    expect(complete(COMMANDS, ['order', 'place', '--qu'])).to.deep.equal(['--quantity'])
    expect(complete(COMMANDS, ['order', 'place', '--side', ''])).to.deep.equal(['LONG', 'SHORT'])
    expect(complete(COMMANDS, ['nonsense', ''])).to.deep.equal([])
  })

  it('when a word is completed in bash, the shell has the commands and flags', function () {
    if (isMissing('bash')) return skipBecause(this, 'bash is not installed')
    const script = `source <(clearbatch completion bash)
complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _clearbatch; echo "\${COMPREPLY[*]}"; }
complete_words clearbatch or
complete_words clearbatch order place --qu
complete -p clearbatch`
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], { env, encoding: 'utf8' })
    expect(stderr).to.equal('')
    expect(stdout.split('\n').slice(0, 2)).to.deep.equal(['order', '--quantity'])
    expect(stdout).to.include('-F _clearbatch clearbatch')
  })

  it('when a word is completed in zsh, the shell has the commands', function () {
    if (isMissing('zsh')) return skipBecause(this, 'zsh is not installed')
    const script = `autoload -U compinit; compinit -u -d ${folder}/zcompdump
compadd() { shift; print -l -- "\${(@P)1}" }
source <(clearbatch completion zsh)
words=(clearbatch order p); CURRENT=3
_clearbatch
print -- $_comps[clearbatch]`
    const { stdout } = spawnSync('zsh', ['-f', '-c', script], { env, encoding: 'utf8' })
    expect(stdout.trim().split('\n')).to.deep.equal(['place', '_clearbatch'])
  })

  it('when a word is completed in fish, the shell has the commands, flags and values, and files where the table has none', function () {
    if (isMissing('fish')) return skipBecause(this, 'fish is not installed')
    const lines = [
      'order p',
      'order place --qu',
      'order place --side S',
      'cluster st',
      'batch verify --file clearb',
    ]
    const completed = lines.map((line) => `echo; complete -C 'clearbatch ${line}'`)
    const script = ['clearbatch completion fish | source', `cd ${folder}`, ...completed].join('; ')
    const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', script], { env, encoding: 'utf8' })
    expect(stderr).to.equal('')
    const found = ['place', '--quantity', 'SHORT', 'status', 'clearbatch']
    expect(stdout.trim().split('\n\n')).to.deep.equal(found)
  })

  it('when the shell is unknown, the valid ones are named', () => {
    const { status, stderr } = spawnSync('clearbatch', ['completion', 'tcsh'], { env, encoding: 'utf8' })
    expect([status, stderr]).to.deep.equal([2, 'expected one of bash, zsh, fish; received tcsh\n'])
  })
})
