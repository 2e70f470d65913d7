/** `npm run describe`: writes the descriptions that the sources generate into `docs/`. It refuses a change that breaks clients without a reason. */
import { spawnSync } from 'node:child_process'
import { appendFileSync, writeFileSync } from 'node:fs'
import { reference } from '../../cli/help.ts'
import { COMMANDS } from '../../cli/table.ts'
import { argumentsOf, text } from '../../service/command-line.ts'
import { startExchange } from '../api/support/exchange-fixture.ts'
import { changeList } from './change-list.ts'
import { compareWithCommitted } from './documents.ts'
import { metricsText } from './metrics.ts'
import { settingsText } from './settings.ts'

const COMMAND_LINE = {
  command: 'npm run describe --',
  flags: {
    breaking: text('<reason>', 'accepts changes that break clients, and records them with this reason'),
  },
} as const

const CHANGES = 'docs/api-changes.md'

const { breaking: reason } = argumentsOf(COMMAND_LINE)
writeFileSync('docs/operate/settings.md', settingsText())
writeFileSync('docs/operate/metrics.md', metricsText())
writeFileSync('docs/trade/commands.md', reference(COMMANDS))
const exchange = await startExchange()
const compared = await compareWithCommitted(exchange).finally(() => exchange.stop())
const breaking = compared.flatMap((each) => each.breaking)

if (breaking.length > 0 && reason === undefined) {
  process.stderr.write(`clients would break:\n${breaking.join('\n')}\n`)
  process.stderr.write('Keep the earlier form, or run `npm run describe -- --breaking "<reason>"`.\n')
  process.exitCode = 1
} else {
  for (const { file, text: written, isCurrent } of compared) {
    if (!isCurrent) writeFileSync(file, written)
    process.stdout.write(`${file}: ${isCurrent ? 'unchanged' : 'written'}\n`)
  }
  if (breaking.length > 0) {
    const day = new Date().toISOString().slice(0, 'yyyy-mm-dd'.length)
    appendFileSync(CHANGES, `\n## ${day}\n\n${reason}\n\n${changeList(breaking)}\n`)
  }
  // The types of the Python client; its tests compare them too.
  const { status } = spawnSync('python3', ['python/generate.py'], { stdio: 'inherit' })
  if (status !== 0) process.stdout.write('python/clearbatch/responses.py: run `python3 python/generate.py`\n')
}
