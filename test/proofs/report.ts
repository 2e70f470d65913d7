/** docs/audit/proofs.md: what `npm run prove` proved, and what stays tested only. */
import type { Limits, Verdict } from './model-checker.ts'
import type { Property } from './properties.ts'

interface Result {
  readonly property: Property
  readonly verdict: Verdict
}

const INTRODUCTION = `# Machine-checked properties

\`npm run prove\` gives the properties of \`test/proofs/*.sol\` to solc's model checker (SMTChecker, engine BMC; no function has a loop) and writes this page. A property is *proved* if no input
within the bounds of \`docs/audit/arithmetic.md\` breaks an assertion, overflows, or divides by zero, in the property and in the library code that it calls.
\`test/proofs/model-checker.ts\` states what is changed for the proof: unchecked arithmetic is checked, a revert is a failed \`require\`, functions that use state are left out.

Only tested: bit layouts and assembly (\`PositionLib.pack\`, \`unpack\`, \`addMargin\`; \`OrderLib.read\`) and functions that read packed words (\`PositionLib.applyFill\`).
\`test/parity/salts.exhaustive.test.ts\` runs the finite states of \`SaltLib\`. The solvers reached their time limit on an *undecided* property; its row names a test.
\`test/parity/\` and \`test/contracts/invariants/Band.t.sol\` test every property on generated input.`

const row = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`

export function reportOf(results: readonly Result[], versions: readonly string[], limits: Limits): string {
  const proved = results.filter(({ verdict }) => verdict.status === 'proved').length
  const lines = [
    INTRODUCTION,
    '',
    `${proved} of ${results.length} properties are proved. Solvers: ${versions.join('; ')}.`,
    `Limits: ${limits.query} s per condition and solver, ${limits.property} s per property.`,
    '',
    row('library', 'property', 'statement', 'result'),
    `|${'---|'.repeat(4)}`,
    ...results.map(({ property, verdict }) => {
      const { library, name, statement, fuzzed } = property
      const test = verdict.status === 'undecided' ? ` \`${fuzzed}\` |` : ''
      return `${row(`\`${library}\``, `\`${name}\``, statement, verdict.status)}${test}`
    }),
  ]
  return `${lines.join('\n')}\n`
}
