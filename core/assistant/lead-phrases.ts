import type { Wish } from "../engines/answers/answers.ts";

/** The standard lead section's own words. */
export interface LeadPhrases {
  /** Titles of the collapsed card. */
  title: Record<Wish, string>;
  /** Headlines of the open section. */
  headline: Record<Wish, string>;
  body: string;
  subhead: string;
  path: { label: string; body: string };
  steps: { title: string; body: string }[];
  /** `{question}` and `{titles}` stand for what the visitor knows already. */
  signals: { question: string; titles: string; form: string; goesAlong: string };
  submit: string;
  disclosure: string;
  fields: { email: string; name: string; company: string; phone: string; message: string };
}

/** A language each; nothing here promises more than that the form reaches the owner. */
export const leadPhrases: Readonly<Record<string, LeadPhrases>> & { en: LeadPhrases } = {
  en: {
    title: { demo: "Ask for a demo", quote: "Ask for a quote", purchase: "Ask to buy", contact: "Get in touch" },
    headline: {
      demo: "See it in a demo",
      quote: "A quote for your case",
      purchase: "Tell us what you need",
      contact: "Let’s talk about your question",
    },
    body: "Leave your email address and your question goes along with it.",
    subhead: "A short form; only your email address is required.",
    path: {
      label: "Send the short form",
      body: "Your question and this answer go along, so you don’t have to explain twice.",
    },
    steps: [
      { title: "Leave your address", body: "Say where you can be reached." },
      { title: "Add what matters", body: "A sentence about your case helps." },
      { title: "Hear back", body: "The team sees your question in its context." },
    ],
    signals: {
      question: "You asked: {question}",
      titles: "Answered from: {titles}",
      form: "Only your email address is required",
      goesAlong: "Your question goes along with the form",
    },
    submit: "Send",
    disclosure:
      "Sent along with the form: this page’s name, your question, the answer shown, the titles of its sources and how they were found.",
    fields: { email: "Email", name: "Name", company: "Company", phone: "Phone", message: "Message" },
  },
  de: {
    title: {
      demo: "Demo anfragen",
      quote: "Angebot anfragen",
      purchase: "Kauf anfragen",
      contact: "Kontakt aufnehmen",
    },
    headline: {
      demo: "In einer Demo ansehen",
      quote: "Ein Angebot für Ihren Fall",
      purchase: "Sagen Sie uns, was Sie brauchen",
      contact: "Sprechen wir über Ihre Frage",
    },
    body: "Hinterlassen Sie Ihre E-Mail-Adresse; Ihre Frage geht mit.",
    subhead: "Ein kurzes Formular; nur die E-Mail-Adresse ist nötig.",
    path: {
      label: "Kurzes Formular senden",
      body: "Ihre Frage und diese Antwort gehen mit, damit Sie nichts doppelt erklären müssen.",
    },
    steps: [
      { title: "Adresse hinterlassen", body: "Sagen Sie, wo Sie erreichbar sind." },
      { title: "Ergänzen, was zählt", body: "Ein Satz zu Ihrem Fall hilft." },
      { title: "Antwort erhalten", body: "Das Team sieht Ihre Frage im Zusammenhang." },
    ],
    signals: {
      question: "Sie haben gefragt: {question}",
      titles: "Beantwortet aus: {titles}",
      form: "Nur die E-Mail-Adresse ist nötig",
      goesAlong: "Ihre Frage geht mit dem Formular mit",
    },
    submit: "Senden",
    disclosure:
      "Mit dem Formular werden gesendet: der Name dieser Seite, Ihre Frage, die gezeigte Antwort, die Titel ihrer Quellen und wie sie gefunden wurden.",
    fields: { email: "E-Mail", name: "Name", company: "Firma", phone: "Telefon", message: "Nachricht" },
  },
  fr: {
    title: {
      demo: "Demander une démo",
      quote: "Demander un devis",
      purchase: "Faire une demande d’achat",
      contact: "Prendre contact",
    },
    headline: {
      demo: "Voir une démonstration",
      quote: "Un devis pour votre cas",
      purchase: "Dites-nous ce qu’il vous faut",
      contact: "Parlons de votre question",
    },
    body: "Laissez votre adresse e-mail ; votre question y sera jointe.",
    subhead: "Un court formulaire ; seule l’adresse e-mail est obligatoire.",
    path: {
      label: "Envoyer le court formulaire",
      body: "Votre question et cette réponse sont jointes : pas besoin de tout réexpliquer.",
    },
    steps: [
      { title: "Laisser une adresse", body: "Dites où l’on peut vous joindre." },
      { title: "Préciser l’essentiel", body: "Une phrase sur votre cas suffit." },
      { title: "Recevoir une réponse", body: "L’équipe voit votre question dans son contexte." },
    ],
    signals: {
      question: "Votre question : {question}",
      titles: "Réponse tirée de : {titles}",
      form: "Seule l’adresse e-mail est obligatoire",
      goesAlong: "Votre question est jointe au formulaire",
    },
    submit: "Envoyer",
    disclosure:
      "Sont envoyés avec le formulaire : le nom de cette page, votre question, la réponse affichée, les titres de ses sources et la façon dont elles ont été trouvées.",
    fields: { email: "E-mail", name: "Nom", company: "Entreprise", phone: "Téléphone", message: "Message" },
  },
  es: {
    title: {
      demo: "Pedir una demostración",
      quote: "Pedir presupuesto",
      purchase: "Solicitar la compra",
      contact: "Ponerse en contacto",
    },
    headline: {
      demo: "Véalo en una demostración",
      quote: "Un presupuesto para su caso",
      purchase: "Díganos qué necesita",
      contact: "Hablemos de su pregunta",
    },
    body: "Deje su correo electrónico y su pregunta se enviará con él.",
    subhead: "Un formulario breve; solo el correo es obligatorio.",
    path: {
      label: "Enviar el formulario breve",
      body: "Su pregunta y esta respuesta se envían también, para no explicarlo dos veces.",
    },
    steps: [
      { title: "Deje su correo", body: "Díganos dónde localizarle." },
      { title: "Añada lo importante", body: "Una frase sobre su caso ayuda." },
      { title: "Reciba una respuesta", body: "El equipo verá su pregunta en contexto." },
    ],
    signals: {
      question: "Su pregunta: {question}",
      titles: "Respuesta basada en: {titles}",
      form: "Solo el correo es obligatorio",
      goesAlong: "Su pregunta se envía con el formulario",
    },
    submit: "Enviar",
    disclosure:
      "Con el formulario se envían: el nombre de esta página, su pregunta, la respuesta mostrada, los títulos de sus fuentes y cómo se encontraron.",
    fields: { email: "Correo electrónico", name: "Nombre", company: "Empresa", phone: "Teléfono", message: "Mensaje" },
  },
  it: {
    title: {
      demo: "Richiedere una demo",
      quote: "Richiedere un preventivo",
      purchase: "Richiedere l’acquisto",
      contact: "Mettersi in contatto",
    },
    headline: {
      demo: "Vederlo in una demo",
      quote: "Un preventivo per il suo caso",
      purchase: "Ci dica di che cosa ha bisogno",
      contact: "Parliamo della sua domanda",
    },
    body: "Lasci il suo indirizzo e-mail; la domanda verrà inviata insieme.",
    subhead: "Un modulo breve; è obbligatorio solo l’indirizzo e-mail.",
    path: {
      label: "Inviare il modulo breve",
      body: "La domanda e questa risposta vengono allegate, per non spiegare tutto due volte.",
    },
    steps: [
      { title: "Lasciare un indirizzo", body: "Ci dica dove trovarla." },
      { title: "Aggiungere ciò che conta", body: "Basta una frase sul suo caso." },
      { title: "Ricevere una risposta", body: "Il team vede la domanda nel suo contesto." },
    ],
    signals: {
      question: "La sua domanda: {question}",
      titles: "Risposta tratta da: {titles}",
      form: "È obbligatorio solo l’indirizzo e-mail",
      goesAlong: "La domanda viene inviata con il modulo",
    },
    submit: "Invia",
    disclosure:
      "Con il modulo vengono inviati: il nome di questa pagina, la domanda, la risposta mostrata, i titoli delle fonti e come sono state trovate.",
    fields: { email: "E-mail", name: "Nome", company: "Azienda", phone: "Telefono", message: "Messaggio" },
  },
  nl: {
    title: {
      demo: "Demo aanvragen",
      quote: "Offerte aanvragen",
      purchase: "Aankoop aanvragen",
      contact: "Contact opnemen",
    },
    headline: {
      demo: "Bekijk het in een demo",
      quote: "Een offerte voor uw situatie",
      purchase: "Vertel ons wat u nodig hebt",
      contact: "Laten we uw vraag bespreken",
    },
    body: "Laat uw e-mailadres achter; uw vraag gaat mee.",
    subhead: "Een kort formulier; alleen het e-mailadres is verplicht.",
    path: {
      label: "Kort formulier versturen",
      body: "Uw vraag en dit antwoord gaan mee, zodat u niets twee keer hoeft uit te leggen.",
    },
    steps: [
      { title: "Adres achterlaten", body: "Laat weten waar u bereikbaar bent." },
      { title: "Aanvullen wat telt", body: "Een zin over uw situatie helpt." },
      { title: "Antwoord krijgen", body: "Het team ziet uw vraag in de context." },
    ],
    signals: {
      question: "U vroeg: {question}",
      titles: "Beantwoord uit: {titles}",
      form: "Alleen het e-mailadres is verplicht",
      goesAlong: "Uw vraag gaat mee met het formulier",
    },
    submit: "Versturen",
    disclosure:
      "Met het formulier worden verstuurd: de naam van deze pagina, uw vraag, het getoonde antwoord, de titels van de bronnen en hoe ze zijn gevonden.",
    fields: { email: "E-mail", name: "Naam", company: "Bedrijf", phone: "Telefoon", message: "Bericht" },
  },
  pt: {
    title: {
      demo: "Pedir uma demonstração",
      quote: "Pedir um orçamento",
      purchase: "Pedir para comprar",
      contact: "Entrar em contacto",
    },
    headline: {
      demo: "Veja numa demonstração",
      quote: "Um orçamento para o seu caso",
      purchase: "Diga-nos do que precisa",
      contact: "Vamos falar sobre a sua pergunta",
    },
    body: "Deixe o seu e-mail e a sua pergunta segue com ele.",
    subhead: "Um formulário curto; só o e-mail é obrigatório.",
    path: {
      label: "Enviar o formulário curto",
      body: "A sua pergunta e esta resposta seguem também, para não explicar duas vezes.",
    },
    steps: [
      { title: "Deixar um endereço", body: "Diga onde o podemos contactar." },
      { title: "Acrescentar o que importa", body: "Uma frase sobre o seu caso ajuda." },
      { title: "Receber uma resposta", body: "A equipa vê a sua pergunta no contexto." },
    ],
    signals: {
      question: "A sua pergunta: {question}",
      titles: "Resposta baseada em: {titles}",
      form: "Só o e-mail é obrigatório",
      goesAlong: "A sua pergunta segue com o formulário",
    },
    submit: "Enviar",
    disclosure:
      "Com o formulário são enviados: o nome desta página, a sua pergunta, a resposta mostrada, os títulos das fontes e como foram encontradas.",
    fields: { email: "E-mail", name: "Nome", company: "Empresa", phone: "Telefone", message: "Mensagem" },
  },
};

/** The words of a language; English where there are none. */
export function leadPhrasesOf(language: string): LeadPhrases {
  return leadPhrases[language] ?? leadPhrases.en;
}
