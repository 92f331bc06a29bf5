import type { Language } from "./language.ts";

/** What the assistant says in its own words. */
export interface Phrases {
  /** The public text doesn't answer. */
  unanswered: string;
  /** Leads to a sentence that speaks of part of the question. */
  closest: string;
  /** Retrieval or the model failed. */
  fallback: string;
  /** Secrets, private data, internal matter or paid-only text were asked for. */
  refused: string;
  greeting: string;
  thanks: string;
  /** What the assistant is. */
  about: string;
  source: string;
  sources: string;
  /** A question about a heading, which stands for `{heading}`. */
  ask: string;
}

/** The assistant's own sentences, a language each. */
export const phrases: Record<Language, Phrases> = {
  en: {
    unanswered: "I couldn't find an answer to that in the public information on this page.",
    closest: "This comes closest:",
    fallback: "I can't look that up right now. Please try again in a moment, or use the contact details on this page.",
    refused:
      "I can't help with that. I only answer from the public information here; secrets, credentials, private data, internal matters and paid-only content are not part of it.",
    greeting: "Hello! What would you like to know?",
    thanks: "You're welcome!",
    about: "I'm the assistant of this page. I answer questions from its public information.",
    source: "Source",
    sources: "Sources",
    ask: "What does it say about “{heading}”?",
  },
  de: {
    unanswered: "Dazu habe ich in den öffentlichen Informationen dieser Seite keine Antwort gefunden.",
    closest: "Das kommt dem am nächsten:",
    fallback:
      "Das kann ich gerade nicht nachsehen. Bitte versuchen Sie es gleich noch einmal oder nutzen Sie die Kontaktangaben auf dieser Seite.",
    refused:
      "Dabei kann ich nicht helfen. Ich antworte nur aus den öffentlichen Informationen hier; Geheimnisse, Zugangsdaten, private Daten, Internes und bezahlte Inhalte gehören nicht dazu.",
    greeting: "Hallo! Was möchten Sie wissen?",
    thanks: "Gern geschehen!",
    about: "Ich bin der Assistent dieser Seite und beantworte Fragen aus ihren öffentlichen Informationen.",
    source: "Quelle",
    sources: "Quellen",
    ask: "Was steht hier zu „{heading}“?",
  },
  fr: {
    unanswered: "Je n’ai pas trouvé de réponse à cette question dans les informations publiques de cette page.",
    closest: "Voici ce qui s’en rapproche le plus :",
    fallback:
      "Je ne peux pas vérifier cela pour le moment. Réessayez dans un instant ou utilisez les coordonnées indiquées sur cette page.",
    refused:
      "Je ne peux pas répondre à cela. Je réponds uniquement à partir des informations publiques ; les secrets, les identifiants, les données privées, les informations internes et les contenus payants n’en font pas partie.",
    greeting: "Bonjour ! Que souhaitez-vous savoir ?",
    thanks: "Avec plaisir !",
    about: "Je suis l’assistant de cette page. Je réponds aux questions à partir de ses informations publiques.",
    source: "Source",
    sources: "Sources",
    ask: "Que dit cette page sur « {heading} » ?",
  },
  es: {
    unanswered: "No he encontrado una respuesta a eso en la información pública de esta página.",
    closest: "Esto es lo más parecido:",
    fallback:
      "Ahora mismo no puedo consultarlo. Inténtelo de nuevo en un momento o use los datos de contacto de esta página.",
    refused:
      "No puedo ayudar con eso. Solo respondo con la información pública de aquí; los secretos, las credenciales, los datos privados, los asuntos internos y el contenido de pago no forman parte de ella.",
    greeting: "¡Hola! ¿Qué le gustaría saber?",
    thanks: "¡De nada!",
    about: "Soy el asistente de esta página. Respondo preguntas con su información pública.",
    source: "Fuente",
    sources: "Fuentes",
    ask: "¿Qué dice la página sobre «{heading}»?",
  },
  it: {
    unanswered: "Non ho trovato una risposta nelle informazioni pubbliche di questa pagina.",
    closest: "Questo è ciò che si avvicina di più:",
    fallback: "In questo momento non posso verificarlo. Riprovi tra poco o usi i contatti indicati in questa pagina.",
    refused:
      "Non posso aiutare con questo. Rispondo solo in base alle informazioni pubbliche; segreti, credenziali, dati privati, questioni interne e contenuti a pagamento non ne fanno parte.",
    greeting: "Buongiorno! Che cosa desidera sapere?",
    thanks: "Prego!",
    about: "Sono l’assistente di questa pagina. Rispondo alle domande in base alle sue informazioni pubbliche.",
    source: "Fonte",
    sources: "Fonti",
    ask: "Che cosa dice la pagina su «{heading}»?",
  },
  nl: {
    unanswered: "Daar heb ik in de openbare informatie op deze pagina geen antwoord op gevonden.",
    closest: "Dit komt het dichtst in de buurt:",
    fallback: "Dat kan ik nu niet opzoeken. Probeer het zo nog eens of gebruik de contactgegevens op deze pagina.",
    refused:
      "Daar kan ik niet mee helpen. Ik antwoord alleen op basis van de openbare informatie hier; geheimen, inloggegevens, privégegevens, interne zaken en betaalde inhoud horen daar niet bij.",
    greeting: "Hallo! Wat wilt u weten?",
    thanks: "Graag gedaan!",
    about: "Ik ben de assistent van deze pagina en beantwoord vragen op basis van de openbare informatie.",
    source: "Bron",
    sources: "Bronnen",
    ask: "Wat staat er over ‘{heading}’?",
  },
  pt: {
    unanswered: "Não encontrei uma resposta a isso nas informações públicas desta página.",
    closest: "Isto é o que mais se aproxima:",
    fallback:
      "Neste momento não consigo verificar isso. Tente novamente daqui a pouco ou use os contactos desta página.",
    refused:
      "Não posso ajudar com isso. Respondo apenas com as informações públicas daqui; segredos, credenciais, dados privados, assuntos internos e conteúdo pago não fazem parte delas.",
    greeting: "Olá! O que gostaria de saber?",
    thanks: "De nada!",
    about: "Sou o assistente desta página. Respondo a perguntas com as suas informações públicas.",
    source: "Fonte",
    sources: "Fontes",
    ask: "O que diz a página sobre “{heading}”?",
  },
};
