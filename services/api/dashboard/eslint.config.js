import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // Figures stand in sentences.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // Text from models is data: only text nodes show it.
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML", "write"].map((property) => ({
          property,
        })),
      ],
    },
  },
);
