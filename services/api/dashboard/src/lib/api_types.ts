// Generated from the API's OpenAPI document; a test compares the two. To write it again:
//   python -m tests.architecture.api_types > services/api/dashboard/src/lib/api_types.ts

/** One score or error for each item, in order. */
export interface BatchAnswer {
  scores: (ScoreAnswer | ItemProblem)[];
}

/** The costs of all models, the most expensive first; those of unknown cost last, by id. */
export interface CostAnalysis {
  models: ModelCost[];
  total_cost_usd: number | null;
  cost_known: number | null;
  profile: string;
}

/** A scorer profile, as it describes itself. */
export interface DescribedProfile {
  name: string;
  canonical: boolean;
  vectors: DescribedVector[];
  weights: Record<string, Record<string, number>>;
  legend: LegendEntry[];
}

/** A vector in words. */
export interface DescribedVector {
  name: string;
  meaning: string;
  formula: string;
  examples: WorkedExample[];
  ranges: NamedRange[];
}

/** One dimension of one model. Beside these keys stands one for each vector: its mean. */
export interface DimensionFigures {
  runs: number;
  overall: number | null;
  coverage: number | null;
  interval: [number, number] | null;
  [name: string]: number | null | [number, number];
}

/** Experiments, newest first. */
export interface ExperimentPage {
  experiments: ExperimentStatus[];
  total: number;
  offset: number;
}

/** An experiment at one moment. */
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

/** An experiment, and how far it is, in runs. */
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

/** One turn before the scored one. */
export interface GivenTurn {
  student: string;
  tutor: string;
  output_tokens?: number | null;
  status?: Status | null;
}

/** All is well; anything else is a problem instead. */
export interface Health {
  status?: "ok";
}

/** An item of a batch that could not be scored. */
export interface ItemProblem {
  error: Problem;
}

/** A kind of span in the evidence for a score. */
export interface LegendEntry {
  kind: string;
  name: string;
  meaning: string;
  mark: Mark;
}

/** How a page marks a span. */
export type Mark = "raises" | "lowers" | "neutral" | "passage";

/** All models under one profile, best first; those without a score last, by id. */
export interface ModelComparison {
  models: ModelFigures[];
  winner: string | null;
  profile: string;
  vectors: string[];
  dimensions: string[];
  experiments: ExperimentSummary[];
  mixed_conditions: boolean;
  note: string | null;
}

/** What one model took and cost. Money is in USD; null is unknown, never zero. */
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

/** One model's row. Every score is 0.0 to 1.0, unrounded; null is unknown, never zero. */
export interface ModelFigures {
  model_id: string;
  model_name: string;
  kind: "reference" | "model";
  rank: number | null;
  simulated_latency_ms: number;
  total_runs: number;
  planned_runs: number;
  overall_score: number | null;
  confidence_interval: [number, number] | null;
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

/** A word for the scores from `least` up to the next range. */
export interface NamedRange {
  least: number;
  word: string;
}

/** An OpenAPI 3.1 document. */
export type OpenApiDocument = Record<string, unknown>;

/** What every error of this API looks like. */
export interface Problem {
  type?: string;
  title: string;
  status: number;
  detail: string;
}

/** The scorer profiles that are installed. */
export interface ProfileList {
  profiles: DescribedProfile[];
}

/** A score. Beside these keys stands one for each vector: 0.0 to 1.0, null if unscored. */
export interface ScoreAnswer {
  overall: number | null;
  status: Status;
  evidence: ShownEvidence;
  [name: string]: number | null | Status | ShownEvidence;
}

/** Up to 1,000 responses, each looked at by itself. */
export interface ScoreBatch {
  items: Record<string, unknown>[];
}

/** One response, or a batch of them. */
export type ScoreOrBatch = ScoreRequest | ScoreBatch;

/** A score for a response, a list of them for a batch. */
export type ScoreOrBatchAnswer = ScoreAnswer | BatchAnswer;

/** A tutor's response, and what a profile may want to know about it. */
export interface ScoreRequest {
  text: string;
  output_tokens?: number | null;
  status?: Status;
  dimension?: string | null;
  student_message?: string;
  earlier_turns?: GivenTurn[];
  profile?: string;
}

/** Why the figures are what they are. */
export interface ShownEvidence {
  spans: ShownSpan[];
  facts: Record<string, ShownFact>;
  notes: string[];
}

/** How one vector came to its score. */
export interface ShownFact {
  values: Record<string, number | string>;
  sentence: string;
  word: string | null;
}

/** A part of the text that a vector looked at, counted in code points, the end exclusive. */
export interface ShownSpan {
  start: number;
  end: number;
  kind: string;
  label: string;
}

/** What an experiment's calls cost so far, in USD; those of reference tutors are simulated. */
export interface SpendingFigures {
  budget_usd: number | null;
  spent_usd: number | null;
  in_flight_usd: number | null;
  exhausted: boolean;
}

/** How an experiment stands. */
export type State = "complete" | "running" | "overdue" | "paused" | "cancelled" | "out_of_budget";

/** What became of a response. */
export type Status = "ok" | "truncated" | "refused" | "empty" | "error";

/** One vector over all of a model's scored responses. */
export interface VectorFigure {
  mean: number | null;
  interval: [number, number] | null;
  n: number;
  not_applicable?: number;
}

/** A response and what the running scorer makes of it. */
export interface WorkedExample {
  text: string;
  output_tokens: number | null;
  score: number | null;
  arithmetic: string | null;
  word: string | null;
}

/** What each address answers to a GET, where that is JSON. */
export interface GetAnswers {
  "/api/cost-analysis": CostAnalysis;
  "/api/experiments": ExperimentPage;
  "/api/model-comparison": ModelComparison;
  "/api/profiles": ProfileList;
  "/healthz": Health;
  "/openapi.json": OpenApiDocument;
  "/readyz": Health;
}

/** What each address answers to a POST, where that is JSON. */
export interface PostAnswers {
  "/api/score": ScoreOrBatchAnswer;
}
