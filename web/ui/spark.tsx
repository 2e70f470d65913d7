/** Small line charts without axes, and one with. */

interface SparkProps {
  readonly values: readonly number[]
  readonly width: number
  readonly height: number
  readonly label: string
}

export function linePath(values: readonly number[], width: number, height: number): string {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const spread = high - low || 1
  const step = width / Math.max(1, values.length - 1)
  return values
    .map(
      (value, index) =>
        `${index === 0 ? 'M' : 'L'}${(index * step).toFixed(1)} ${(height - 1 - ((value - low) / spread) * (height - 2)).toFixed(1)}`,
    )
    .join('')
}

export function Spark({ values, width, height, label }: SparkProps) {
  if (values.length < 2) return <span class="muted">–</span>
  const isUp = (values.at(-1) ?? 0) >= (values[0] ?? 0)
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
    >
      <path
        d={linePath(values, width, height)}
        fill="none"
        stroke={isUp ? 'var(--up)' : 'var(--down)'}
        stroke-width="1.5"
      />
    </svg>
  )
}
