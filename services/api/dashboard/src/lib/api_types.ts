// Generated from the API's OpenAPI document; a test compares the two. To write it again:
//   python -m tests.architecture.api_types > services/api/dashboard/src/lib/api_types.ts

export interface BatchAnswer {
  scores: (ScoreAnswer | ItemProblem)[];
}

export interface CostAnalysis {
  models: ModelCost[];
  total_cost_usd: number | null;
  cost_known: number | null;
  profile: string;
}

export interface DescribedProfile {
  name: string;
  canonical: boolean;
  vectors: DescribedVector[];
  weights: Record<string, Record<string, number>>;
  legend: LegendEntry[];
}

export interface DescribedVector {
  name: string;
  meaning: string;
  formula: string;
  examples: WorkedExample[];
  ranges: NamedRange[];
}

export interface DimensionFigures {
  runs: number;
  overall: number | null;
  coverage: number | null;
  interval: [number, number] | null;
  [name: string]: number | null | [number, number];
}

export interface ExperimentPage {
  experiments: ExperimentStatus[];
  total: number;
  offset: number;
}

export interface ExperimentStatus {
  experiment_id: string;
  manifest_id: string;
  conditions_id: string;
  profile: string;
  occasion: string | null;
  name: string | null;
  notes: string | null;
  models: number;
  created_at: string;
  completed_at: string | null;
  planned: number;
  done: number;
  failed: number;
  left: number;
  deadline_at: string;
  state: State;
  spending: SpendingFigures;
}

export interface ExperimentSummary {
  experiment_id: string;
  manifest_id: string;
  conditions_id: string;
  profile: string;
  occasion: string | null;
  name: string | null;
  notes: string | null;
  models: number;
  created_at: string;
  completed_at: string | null;
  planned: number;
  done: number;
}

export interface GivenTurn {
  student: string;
  tutor: string;
  output_tokens?: number | null;
  status?: Status | null;
}

export interface Health {
  status?: "ok";
}

export interface ItemProblem {
  error: Problem;
}

export interface LegendEntry {
  kind: string;
  name: string;
  meaning: string;
  mark: Mark;
}

export type Mark = "raises" | "lowers" | "neutral" | "passage";

export interface ModelComparison {
  models: ModelFigures[];
  winner: string | null;
  profile: string;
  vectors: string[];
  dimensions: string[];
  experiments: ExperimentSummary[];
  mixed_conditions: boolean;
  note: string | null;
  version?: string;
}

export interface ModelCost {
  model_id: string;
  model_name: string;
  kind: "reference" | "model";
  total_cost_usd: number | null;
  cost_known: number | null;
  cost_per_run_usd: number | null;
  cost_per_scored_response_usd: number | null;
  total_runs: number;
  responses: number;
  scored_responses: number;
  total_input_tokens: number | null;
  total_visible_output_tokens: number | null;
  total_reasoning_tokens: number | null;
  experiment_ids: string[];
}

export interface ModelFigures {
  model_id: string;
  model_name: string;
  kind: "reference" | "model";
  rank: number | null;
  rank_interval: [number, number] | null;
  simulated_latency_ms: number;
  total_runs: number;
  planned_runs: number;
  overall_score: number | null;
  confidence_interval: [number, number] | null;
  interval_note: string | null;
  coverage: number | null;
  scored_responses: number;
  statuses: Record<string, number>;
  vectors: Record<string, VectorFigure>;
  dimensions: Record<string, DimensionFigures>;
  mean_visible_output_tokens: number | null;
  mean_reasoning_tokens: number | null;
  mean_input_tokens: number | null;
  mean_latency_ms: number | null;
  total_input_tokens: number | null;
  total_visible_output_tokens: number | null;
  total_reasoning_tokens: number | null;
  mean_cost_usd: number | null;
  total_cost_usd: number | null;
  cost_known: number | null;
  experiment_ids: string[];
}

export interface NamedRange {
  least: number;
  word: string;
}

export type OpenApiDocument = Record<string, unknown>;

export interface Problem {
  type?: string;
  title: string;
  status: number;
  detail: string;
}

export interface ProfileList {
  profiles: DescribedProfile[];
}

export interface ScoreAnswer {
  overall: number | null;
  status: Status;
  evidence: ShownEvidence;
  [name: string]: number | null | Status | ShownEvidence;
}

export interface ScoreBatch {
  items: Record<string, unknown>[];
}

export type ScoreOrBatch = ScoreRequest | ScoreBatch;

export type ScoreOrBatchAnswer = ScoreAnswer | BatchAnswer;

export interface ScoreRequest {
  text: string;
  output_tokens?: number | null;
  status?: Status;
  dimension?: string | null;
  student_message?: string;
  earlier_turns?: GivenTurn[];
  profile?: string;
}

export interface ShownEvidence {
  spans: ShownSpan[];
  facts: Record<string, ShownFact>;
  notes: string[];
}

export interface ShownFact {
  values: Record<string, number | string>;
  sentence: string;
  word: string | null;
}

export interface ShownSpan {
  start: number;
  end: number;
  kind: string;
  label: string;
}

export interface SpendingFigures {
  budget_usd: number | null;
  spent_usd: number | null;
  in_flight_usd: number | null;
  exhausted: boolean;
}

export type State = "complete" | "running" | "overdue" | "paused" | "cancelled" | "out_of_budget";

export type Status = "ok" | "truncated" | "refused" | "empty" | "error";

export interface VectorFigure {
  mean: number | null;
  interval: [number, number] | null;
  n: number;
  not_applicable?: number;
}

export interface WorkedExample {
  text: string;
  output_tokens: number | null;
  score: number | null;
  arithmetic: string | null;
  word: string | null;
}

export interface GetAnswers {
  "/api/cost-analysis": CostAnalysis;
  "/api/experiments": ExperimentPage;
  "/api/model-comparison": ModelComparison;
  "/api/profiles": ProfileList;
  "/healthz": Health;
  "/openapi.json": OpenApiDocument;
  "/readyz": Health;
}

export interface PostAnswers {
  "/api/score": ScoreOrBatchAnswer;
}
